#include "admin/server_json.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "admin/job_condition.h"
#include "admin/job_summary.h"

namespace thinwire {
namespace {

nlohmann::ordered_json NumberOrNull(const std::optional<double>& number) {
  return number.has_value() ? nlohmann::ordered_json(*number) : nullptr;
}

}  // namespace

nlohmann::ordered_json ServersJson(std::span<const ServerHistory> servers, absl::Time now) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ServerHistory& server : servers) {
    nlohmann::ordered_json entry = {{"server", server.server().value}};
    if (server.latest() != nullptr) {
      entry["answered_seconds_ago"] = absl::ToDoubleSeconds(now - server.answered());
      entry["replay_records"] = server.replay_record_count();
      entry["replay_bytes"] = server.replay_bytes();
      if (server.checkpointed()) {
        entry["checkpoint_seconds_ago"] = absl::ToDoubleSeconds(now - *server.checkpointed());
      }
      std::string status;
      // Printing fails only for well-known types, which StatusReply does not use.
      (void)google::protobuf::util::MessageToJsonString(*server.latest(), &status, options);
      entry["status"] = nlohmann::ordered_json::parse(status, nullptr, /*allow_exceptions=*/false);
    }
    list.push_back(std::move(entry));
  }
  const JobSummary summary = SummaryOf(servers, now);
  const JobCondition condition = ConditionOf(servers, summary, now);
  const std::optional<double> noise_scale = summary.noise.scale();
  return {
      {"state", NameOf(condition.state)},
      {"state_text", StateText(condition)},
      {"waiting_seconds", absl::ToDoubleSeconds(condition.waiting)},
      {"servers_unreachable", condition.unreachable},
      {"lost_workers", condition.lost},
      {"symptom", condition.symptom},
      {"problems", condition.problems},
      {"servers", std::move(list)},
      {"summary",
       {{"job", summary.job},
        {"mode", summary.rule.mode},
        {"backup", summary.rule.backup ? nlohmann::ordered_json(*summary.rule.backup) : nullptr},
        {"slack", summary.rule.slack ? nlohmann::ordered_json(*summary.rule.slack) : nullptr},
        {"next_mode", summary.next_mode},
        {"step", summary.step},
        {"step_seconds", absl::ToDoubleSeconds(summary.step_age)},
        {"planned_steps", summary.training.planned_steps},
        {"steps_per_second", NumberOrNull(summary.training.steps_per_second)},
        {"seconds_left", summary.training.left
                             ? nlohmann::ordered_json(absl::ToDoubleSeconds(*summary.training.left))
                             : nullptr},
        {"examples_per_second", summary.training.examples_per_second},
        {"loss", NumberOrNull(summary.training.loss)},
        {"push_codecs", summary.training.push},
        {"pull_codec", summary.training.pull},
        {"insecure_servers", summary.insecure},
        {"live_workers", summary.live},
        {"unfinished_workers", summary.unfinished},
        {"pushes", summary.verdicts},
        {"mean_staleness", summary.mean_staleness},
        {"noise_scale", NumberOrNull(noise_scale)},
        {"batch", summary.batch.examples},
        {"accumulate", summary.batch.accumulate},
        {"wished_workers", summary.batch.wished_workers},
        {"gradient_norm", summary.clipping.gradient_norm},
        {"clipped_updates", summary.clipping.clipped_updates},
        {"push_bytes", summary.push_bytes},
        {"push_fp32_bytes", summary.push_fp32_bytes},
        {"parameter_bytes", summary.parameter_bytes},
        {"parameter_fp32_bytes", summary.parameter_fp32_bytes}}}};
}

}  // namespace thinwire
