#include "admin/server_status.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "admin/html.h"
#include "proto/precision.pb.h"
#include "proto/precision_text.h"

namespace thinwire {
namespace {

using html::BytesText;
using html::CountText;
using html::DurationText;

// A step that is open for this long is remarkable: the page names the workers that have not
// finished it.
constexpr absl::Duration kNotableStepAge = absl::Seconds(2);
// The page lists at most this many shards.
constexpr size_t kMaxShardRowCount = 256;
constexpr std::array<double, 10> kStalenessBounds = {0, 1, 2, 4, 8, 16, 32, 64, 256, 1024};

struct Verdict {
  const char* name;
  uint64_t (StatusReply::*count)() const;
};

constexpr Verdict kVerdicts[] = {
    {"accepted", &StatusReply::accepted_pushes}, {"late", &StatusReply::late_pushes},
    {"repeated", &StatusReply::repeated_pushes}, {"refused", &StatusReply::refused_pushes},
    {"fenced", &StatusReply::fenced_pushes},     {"stale", &StatusReply::stale_pushes},
    {"early", &StatusReply::early_pushes}};

struct ServerCounter {
  const char* metric;
  const char* help;
  uint64_t (StatusReply::*count)() const;
};

constexpr ServerCounter kCounters[] = {
    {"server_lease_expirations_total", "Leases of workers that expired.",
     &StatusReply::lease_expirations},
    {"server_split_steps_total", "Steps for which shards accepted gradients of different workers.",
     &StatusReply::split_steps},
    {"server_dropped_pushes_total", "Refused pushes that were too stale for staleness_policy drop.",
     &StatusReply::dropped_pushes},
    {"server_uncompensated_pushes_total",
     "Stale pushes that staleness_policy dcasgd could not compensate.",
     &StatusReply::uncompensated_pushes},
    {"server_push_payload_bytes_total", "Bytes of encoded gradients received.",
     &StatusReply::push_payload_bytes},
    {"server_parameters_payload_bytes_total", "Bytes of encoded parameters sent.",
     &StatusReply::parameters_payload_bytes},
    {"server_seed_payload_bytes_total", "Bytes of first values received.",
     &StatusReply::seed_payload_bytes},
    {"server_log_records_total", "Records written to the event log.", &StatusReply::log_records},
    {"server_log_bytes_total", "Bytes written to the event log.", &StatusReply::log_bytes},
    {"server_log_commits_total", "Times that the event log was flushed to disk.",
     &StatusReply::log_commits},
    {"server_checkpoints_total", "Completed checkpoints.", &StatusReply::checkpoints},
    {"server_failed_checkpoints_total", "Checkpoints that could not be written.",
     &StatusReply::failed_checkpoints},
    {"server_checkpoint_bytes_total", "Bytes of completed checkpoints.",
     &StatusReply::checkpoint_bytes},
    {"server_saturated_updates_total",
     "Updates that left a parameter or optimizer slot at the largest float.",
     &StatusReply::saturated_updates},
    {"server_clipped_updates_total", "Updates whose gradient was scaled down to clip_norm.",
     &StatusReply::clipped_updates}};

struct ServerTime {
  const char* metric;
  const char* help;
  double (StatusReply::*seconds)() const;
};

constexpr ServerTime kTimes[] = {
    {"server_checkpoint_seconds_total", "Time of writing the completed checkpoints.",
     &StatusReply::checkpoint_seconds},
    {"server_decode_seconds_total", "Time of decoding, summing and applying gradients.",
     &StatusReply::decode_seconds},
    {"server_encode_seconds_total", "Time of encoding parameters.", &StatusReply::encode_seconds}};

// Returns the smallest frontier of the shards; 0 without a shard.
uint64_t StepOf(const StatusReply& reply) {
  uint64_t step = std::numeric_limits<uint64_t>::max();
  for (const ShardStatus& shard : reply.shards()) step = std::min<uint64_t>(step, shard.frontier());
  return reply.shards().empty() ? 0 : step;
}

uint64_t ValueCountOf(const StatusReply& reply) {
  uint64_t count = 0;
  for (const ShardStatus& shard : reply.shards()) count += shard.values();
  return count;
}

std::string PushesHtml(const JobSummary& summary) {
  std::vector<std::vector<std::string>> verdicts;
  for (const Verdict& verdict : kVerdicts) {
    const auto found = summary.verdicts.find(verdict.name);
    const uint64_t count = found == summary.verdicts.end() ? 0 : found->second;
    verdicts.push_back({verdict.name, CountText(count)});
  }
  std::string text =
      absl::StrCat(html::Heading("Pushes by verdict"),
                   html::Table(std::vector<std::string>{"verdict", "pushes"}, verdicts));
  if (!summary.staleness.empty()) {
    absl::StrAppend(
        &text,
        html::Heading(absl::StrFormat("Staleness in updates, mean %.2f", summary.mean_staleness)),
        html::Bars(summary.staleness));
  }
  return absl::StrCat(text, SectionHtml("Bytes saved", BytesTable(summary)));
}

std::string DurabilityHtml(std::span<const ServerHistory> servers, absl::Time now) {
  const StatusTable table = DurabilityTable(servers, now);
  return table.rows.empty() ? "" : SectionHtml("Durability since the server's start", table);
}

std::string ShardsHtml(std::span<const ServerHistory> servers) {
  const std::vector<std::string> columns = {"shard",  "server",  "state",
                                            "values", "version", "frontier"};
  std::vector<std::vector<std::string>> rows;
  size_t shard_count = 0;
  for (const ServerHistory& server : servers) {
    if (server.latest() == nullptr) continue;
    for (const ShardStatus& shard : server.latest()->shards()) {
      if (++shard_count > kMaxShardRowCount) continue;
      rows.push_back({absl::StrCat(shard.shard()), absl::StrCat(server.server().value),
                      shard.open() ? "open" : "shut", CountText(shard.values()),
                      CountText(shard.version()), CountText(shard.frontier())});
    }
  }
  std::string text = absl::StrCat(html::Heading("Shards"), html::Table(columns, rows));
  if (shard_count > rows.size()) {
    absl::StrAppend(&text, html::Paragraph(absl::StrCat(shard_count - rows.size(),
                                                        " more shards are in /status.json")));
  }
  return text;
}

}  // namespace

void NoiseSums::Add(const StatusReply& reply) {
  for (const ShardStatus& shard : reply.shards()) {
    variance += shard.gradient_variance();
    squared_gradient += shard.squared_gradient();
  }
}

std::optional<double> NoiseSums::scale() const {
  if (variance <= 0 || squared_gradient <= 0) return std::nullopt;
  return variance / squared_gradient;
}

RuleStatus RuleStatusOf(const StatusReply& reply) {
  RuleStatus rule = {.mode = reply.mode()};
  if (reply.has_backup()) rule.backup = reply.backup();
  if (reply.has_slack()) rule.slack = reply.slack();
  return rule;
}

void BatchStatus::Add(const StatusReply& reply) {
  if (reply.batch() == 0) return;
  *this = {.examples = reply.batch(),
           .accumulate = reply.accumulate(),
           .epoch_examples = reply.epoch_examples(),
           .wished_workers = reply.wished_workers()};
}

void ClippingStatus::Add(const StatusReply& reply) {
  if (reply.gradient_norm() == 0) return;
  *this = {.gradient_norm = reply.gradient_norm(), .clipped_updates = reply.clipped_updates()};
}

void ServerHistory::Add(StatusReply reply, absl::Time now) {
  const bool restarted = latest_ && latest_->epoch() != reply.epoch();
  const uint64_t step = StepOf(reply);
  if (!latest_ || restarted || step != step_) step_since_ = now;
  if (restarted) checkpointed_.reset();
  if (reply.checkpoints() > (latest_ && !restarted ? latest_->checkpoints() : 0)) {
    checkpointed_ = now;
    checkpoint_record_count_ = reply.log_records();
    checkpoint_log_bytes_ = reply.log_bytes();
  }
  step_ = step;
  answered_ = now;
  latest_ = std::move(reply);
}

uint64_t ServerHistory::replay_record_count() const {
  if (!latest_) return 0;
  return latest_->log_records() - (checkpointed_ ? checkpoint_record_count_ : 0);
}

uint64_t ServerHistory::replay_bytes() const {
  if (!latest_) return 0;
  return latest_->log_bytes() - (checkpointed_ ? checkpoint_log_bytes_ : 0);
}

const char* WorkerSight::state() const {
  if (left) return "left";
  return live ? "live" : "not live";
}

std::map<uint32_t, WorkerSight> WorkersOf(std::span<const ServerHistory> servers, absl::Time now) {
  std::map<uint32_t, WorkerSight> workers;
  for (const ServerHistory& server : servers) {
    if (server.latest() == nullptr) continue;
    for (const WorkerStatus& status : server.latest()->workers()) {
      // The servers are in ascending order, and the first one, the lead, decides who is a member.
      const auto [it, is_new] = workers.try_emplace(status.worker());
      WorkerSight& worker = it->second;
      if (is_new) {
        worker.incarnation = status.incarnation();
        worker.live = status.live();
        worker.left = status.left();
      }
      worker.next = std::min<uint64_t>(worker.next, status.next());
      worker.heard = std::min(
          worker.heard, absl::Seconds(status.heard_seconds_ago()) + (now - server.answered()));
    }
  }
  return workers;
}

StatusTable WorkerTable(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = {.columns = {"worker", "state", "next step", "heard", "incarnation"},
                       .rows = {}};
  for (const auto& [number, worker] : WorkersOf(servers, now)) {
    table.rows.push_back({absl::StrCat(number), worker.state(), CountText(worker.next),
                          absl::StrCat(DurationText(worker.heard), " ago"),
                          absl::StrCat(worker.incarnation)});
  }
  return table;
}

StatusTable ServerTable(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = {.columns = {"server", "step", "shards", "parameters", "received", "sent",
                                   "memory", "answered"},
                       .rows = {}};
  for (const ServerHistory& server : servers) {
    const std::string number = absl::StrCat(server.server().value);
    const StatusReply* reply = server.latest();
    if (reply == nullptr) {
      table.rows.push_back({number, "-", "-", "-", "-", "-", "-", "never"});
      continue;
    }
    table.rows.push_back(
        {number, CountText(server.step()), CountText(static_cast<uint64_t>(reply->shards_size())),
         CountText(ValueCountOf(*reply)), BytesText(reply->push_payload_bytes()),
         BytesText(reply->parameters_payload_bytes()), BytesText(reply->buffered_bytes()),
         absl::StrCat(DurationText(now - server.answered()), " ago")});
  }
  return table;
}

StatusTable DurabilityTable(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = {.columns = {"server", "log", "records", "flushes", "checkpoints",
                                   "last checkpoint", "to replay"},
                       .rows = {}};
  for (const ServerHistory& server : servers) {
    const StatusReply* reply = server.latest();
    if (reply == nullptr || (reply->log_records() == 0 && reply->checkpoints() == 0 &&
                             reply->failed_checkpoints() == 0)) {
      continue;
    }
    std::string checkpoints = CountText(reply->checkpoints());
    if (reply->failed_checkpoints() > 0) {
      absl::StrAppend(&checkpoints, ", ", CountText(reply->failed_checkpoints()), " failed");
    }
    table.rows.push_back(
        {absl::StrCat(server.server().value), BytesText(reply->log_bytes()),
         CountText(reply->log_records()), CountText(reply->log_commits()), std::move(checkpoints),
         server.checkpointed() ? absl::StrCat(DurationText(now - *server.checkpointed()), " ago")
                               : "none",
         absl::StrCat(CountText(server.replay_record_count()), " records, ",
                      BytesText(server.replay_bytes()))});
  }
  return table;
}

StatusTable BytesTable(const JobSummary& summary) {
  return BytesTable({summary.push_bytes, summary.push_fp32_bytes},
                    {summary.parameter_bytes, summary.parameter_fp32_bytes}, /*estimated=*/true);
}

std::string WorkerListText(const std::vector<uint32_t>& workers) {
  return absl::StrCat(workers.size() == 1 ? "worker " : "workers ", absl::StrJoin(workers, ", "));
}

std::string NoiseScaleText(const NoiseSums& noise) {
  const std::optional<double> scale = noise.scale();
  return scale ? absl::StrFormat("%.3g examples", *scale) : "-";
}

std::string BatchText(const BatchStatus& batch) {
  if (batch.examples == 0) return "-";
  std::string text = absl::StrCat(CountText(batch.examples), " examples, ", batch.accumulate,
                                  batch.accumulate == 1 ? " batch" : " batches", " per worker");
  if (batch.wished_workers > 0) {
    absl::StrAppend(&text, ", ", batch.wished_workers, " workers wished");
  }
  return text;
}

std::string ClippingText(const ClippingStatus& clipping) {
  if (clipping.gradient_norm == 0) return "-";
  return absl::StrCat("norm ", absl::StrFormat("%.3g", clipping.gradient_norm), ", ",
                      CountText(clipping.clipped_updates), " updates clipped");
}

std::string InsecureText(const std::vector<uint32_t>& servers) {
  return absl::StrCat("INSECURE: ", servers.size() == 1 ? "server " : "servers ",
                      absl::StrJoin(servers, ", "), servers.size() == 1 ? " listens" : " listen",
                      " for other machines without credentials");
}

JobSummary SummaryOf(std::span<const ServerHistory> servers, absl::Time now) {
  JobSummary summary;
  uint64_t step = std::numeric_limits<uint64_t>::max();
  double push_fp32 = 0;
  for (const ServerHistory& server : servers) {
    const StatusReply* reply = server.latest();
    if (reply == nullptr) continue;
    ++summary.answered_count;
    if (summary.job.empty()) summary.job = reply->job();
    if (summary.rule.mode.empty()) summary.rule = RuleStatusOf(*reply);
    if (!reply->next_mode().empty()) {
      summary.next_mode =
          absl::StrCat(reply->next_mode(), " from step ", reply->next_mode_step(), " on");
    }
    if (reply->precision_decisions_size() > 0) {
      const PrecisionDecision& last = *reply->precision_decisions().rbegin();
      summary.push_choice =
          absl::StrCat(ChosenText(last), " up to step ", CountText(last.next_step()));
    }
    if (reply->insecure()) summary.insecure.push_back(server.server().value);
    for (const Verdict& verdict : kVerdicts) {
      summary.verdicts[verdict.name] += (reply->*verdict.count)();
    }
    for (const auto& [value, count] : reply->staleness()) summary.staleness[value] += count;
    summary.noise.Add(*reply);
    summary.batch.Add(*reply);
    summary.clipping.Add(*reply);
    summary.push_bytes += reply->push_payload_bytes();
    summary.parameter_bytes += reply->parameters_payload_bytes();
    if (reply->shards().empty()) continue;
    step = std::min(step, server.step());
    const double shard_bytes = static_cast<double>(ValueCountOf(*reply)) * sizeof(float) /
                               static_cast<double>(reply->shards_size());
    push_fp32 += shard_bytes * static_cast<double>(reply->accepted_pushes() + reply->late_pushes());
  }
  if (step != std::numeric_limits<uint64_t>::max()) summary.step = step;
  for (const ServerHistory& server : servers) {
    if (server.latest() == nullptr || server.latest()->shards().empty()) continue;
    if (server.step() == summary.step) {
      summary.step_age = std::max(summary.step_age, server.step_age());
    }
  }
  // Each judged push is also a read, so about as many parameters were sent as gradients received.
  summary.push_fp32_bytes = static_cast<uint64_t>(push_fp32);
  summary.parameter_fp32_bytes = summary.push_fp32_bytes;
  double pushes = 0;
  for (const auto& [value, count] : summary.staleness) {
    summary.mean_staleness += static_cast<double>(value) * static_cast<double>(count);
    pushes += static_cast<double>(count);
  }
  if (pushes > 0) summary.mean_staleness /= pushes;
  const std::map<uint32_t, WorkerSight> workers = WorkersOf(servers, now);
  summary.worker_count = static_cast<uint32_t>(workers.size());
  for (const auto& [number, worker] : workers) {
    if (!worker.live) continue;
    summary.live.push_back(number);
    if (worker.next <= summary.step) summary.unfinished.push_back(number);
  }
  return summary;
}

std::string ModeText(const JobSummary& summary) {
  const RuleStatus& rule = summary.rule;
  if (rule.mode.empty()) return "-";
  std::string text = rule.mode;
  if (rule.backup.value_or(0) > 0) absl::StrAppend(&text, " ", *rule.backup);
  if (rule.slack.has_value()) absl::StrAppend(&text, " ", *rule.slack);
  if (!summary.next_mode.empty()) absl::StrAppend(&text, ", ", summary.next_mode);
  return text;
}

std::string ServersHtml(std::span<const ServerHistory> servers, absl::Time now) {
  const JobSummary summary = SummaryOf(servers, now);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"mode", ModeText(summary)},
      {"open step", CountText(summary.step)},
      {"open for", DurationText(summary.step_age)},
      {"live workers", absl::StrCat(summary.live.size(), " of ", summary.worker_count)},
      {"servers", absl::StrCat(summary.answered_count, " of ", servers.size())},
      {"noise scale", NoiseScaleText(summary.noise)},
      {"batch", BatchText(summary.batch)},
      {"gradient compression", html::RatioText(summary.push_fp32_bytes, summary.push_bytes)},
      {"parameter compression",
       html::RatioText(summary.parameter_fp32_bytes, summary.parameter_bytes)}};
  if (!summary.push_choice.empty()) facts.emplace_back("adaptive push", summary.push_choice);
  if (summary.clipping.gradient_norm > 0) {
    facts.emplace_back("gradient", ClippingText(summary.clipping));
  }
  std::string text = html::Facts(facts);
  if (!summary.insecure.empty()) {
    absl::StrAppend(&text, html::Paragraph(InsecureText(summary.insecure), true));
  }
  if (summary.worker_count == 0) {
    absl::StrAppend(&text, html::Paragraph("No worker has joined yet.", true));
  } else if (summary.live.empty()) {
    absl::StrAppend(&text, html::Paragraph("No worker is live.", true));
  } else if (!summary.unfinished.empty() && summary.step_age >= kNotableStepAge) {
    absl::StrAppend(
        &text, html::Paragraph(absl::StrCat("Step ", summary.step, " has been open for ",
                                            DurationText(summary.step_age), ", not finished by ",
                                            WorkerListText(summary.unfinished), "."),
                               true));
  }
  for (const ServerHistory& server : servers) {
    if (server.latest() != nullptr && server.latest()->awaits_rollback()) {
      absl::StrAppend(&text, html::Paragraph(absl::StrCat("Server ", server.server().value,
                                                          " waits for the lead's decision after "
                                                          "its restart."),
                                             true));
    }
  }
  return absl::StrCat(text, SectionHtml("Workers", WorkerTable(servers, now)),
                      SectionHtml("Servers", ServerTable(servers, now)), PushesHtml(summary),
                      DurabilityHtml(servers, now), ShardsHtml(servers));
}

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
  const std::optional<double> noise_scale = summary.noise.scale();
  return {
      {"servers", std::move(list)},
      {"summary",
       {{"job", summary.job},
        {"mode", summary.rule.mode},
        {"backup", summary.rule.backup ? nlohmann::ordered_json(*summary.rule.backup) : nullptr},
        {"slack", summary.rule.slack ? nlohmann::ordered_json(*summary.rule.slack) : nullptr},
        {"next_mode", summary.next_mode},
        {"step", summary.step},
        {"step_seconds", absl::ToDoubleSeconds(summary.step_age)},
        {"insecure_servers", summary.insecure},
        {"live_workers", summary.live},
        {"unfinished_workers", summary.unfinished},
        {"pushes", summary.verdicts},
        {"mean_staleness", summary.mean_staleness},
        {"noise_scale", noise_scale ? nlohmann::ordered_json(*noise_scale) : nullptr},
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

void AddServerMetrics(const ServerHistory& server, absl::Time now, MetricList& metrics) {
  const StatusReply* reply = server.latest();
  if (reply == nullptr) return;
  for (const Verdict& verdict : kVerdicts) {
    metrics.Counter("server_pushes_total", "Pushes of one shard and one step, by verdict.",
                    static_cast<double>((reply->*verdict.count)()), {{"verdict", verdict.name}});
  }
  for (const ServerCounter& counter : kCounters) {
    metrics.Counter(counter.metric, counter.help, static_cast<double>((reply->*counter.count)()));
  }
  for (const ServerTime& time : kTimes) {
    metrics.Counter(time.metric, time.help, (reply->*time.seconds)());
  }
  metrics.Histogram("server_push_staleness_updates",
                    "Updates between the version of an accepted push and its acceptance.",
                    {reply->staleness().begin(), reply->staleness().end()}, kStalenessBounds);
  const std::span<const ServerHistory> own(&server, 1);
  const JobSummary summary = SummaryOf(own, now);
  metrics.Gauge("server_live_workers", "Workers with a valid lease.",
                static_cast<double>(summary.live.size()));
  metrics.Gauge("server_joined_workers", "Workers that ever joined.", summary.worker_count);
  metrics.Gauge("server_target_workers", "Workers that the operator wants.",
                reply->target_workers());
  if (!reply->mode().empty()) {
    metrics.Gauge("server_mode_info", "1, with the mode in force.", 1, {{"mode", reply->mode()}});
  }
  if (reply->has_backup()) {
    metrics.Gauge("server_backup_workers", "The backup workers of the rule in force.",
                  reply->backup());
  }
  if (reply->has_slack()) {
    metrics.Gauge("server_slack_steps", "The slack of the rule in force.", reply->slack());
  }
  metrics.Gauge("server_next_mode_step", "The first step of an announced mode; 0: none.",
                static_cast<double>(reply->next_mode_step()));
  metrics.Gauge("server_batch_examples", "Examples of an update; 0: the batch does not grow.",
                reply->batch());
  metrics.Gauge("server_wished_workers",
                "Workers that would make the batch without accumulation; 0: none accumulates.",
                reply->wished_workers());
  metrics.Gauge("server_gradient_norm",
                "Norm of the newest averaged gradient before clipping; 0: no clip_norm.",
                reply->gradient_norm());
  double heard = 0;
  for (const auto& [number, worker] : WorkersOf(own, now)) {
    if (worker.live) heard = std::max(heard, absl::ToDoubleSeconds(worker.heard));
  }
  metrics.Gauge("server_worker_silence_seconds", "The longest silence of a live worker.", heard);
  metrics.Gauge("server_shards", "Shards of this server.", reply->shards_size());
  const auto open = std::ranges::count_if(reply->shards(), &ShardStatus::open);
  metrics.Gauge("server_open_shards", "Shards that accept pushes.", static_cast<double>(open));
  metrics.Gauge("server_parameters", "Parameters of this server.",
                static_cast<double>(ValueCountOf(*reply)));
  metrics.Gauge("server_gradient_variance",
                "Variance of the gradient of one example, summed over the values.",
                summary.noise.variance);
  metrics.Gauge("server_squared_gradient", "Squared norm of the mean gradient, an estimate.",
                summary.noise.squared_gradient);
  metrics.Gauge("server_step", "The first step that some shard has not finished.",
                static_cast<double>(server.step()));
  metrics.Gauge("server_step_age_seconds", "Time for which server_step has been the open step.",
                absl::ToDoubleSeconds(server.step_age()));
  metrics.Gauge("server_unfinished_workers", "Live workers that have not finished server_step.",
                static_cast<double>(summary.unfinished.size()));
  metrics.Gauge("server_generation", "The generation of the run.",
                static_cast<double>(reply->generation()));
  metrics.Gauge("server_buffered_bytes", "Bytes of received messages in memory.",
                static_cast<double>(reply->buffered_bytes()));
  metrics.Gauge("server_queued_events", "Received events that no shard has applied yet.",
                static_cast<double>(reply->queued_events()));
  metrics.Gauge("server_log_replay_records", "Log records since the last checkpoint.",
                static_cast<double>(server.replay_record_count()));
  metrics.Gauge("server_log_replay_bytes", "Log bytes since the last checkpoint.",
                static_cast<double>(server.replay_bytes()));
  if (server.checkpointed()) {
    metrics.Gauge("server_checkpoint_age_seconds", "Time since the last checkpoint.",
                  absl::ToDoubleSeconds(now - *server.checkpointed()));
  }
  metrics.Gauge("server_awaits_rollback",
                "1 if the server waits for the lead's decision after its restart.",
                reply->awaits_rollback() ? 1 : 0);
  metrics.Gauge("server_status_age_seconds", "Age of the figures above.",
                absl::ToDoubleSeconds(now - server.answered()));
}

}  // namespace thinwire
