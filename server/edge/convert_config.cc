#include "server/edge/convert_config.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/codec/codec.h"
#include "common/status_macros.h"
#include "proto/codec_settings.h"
#include "proto/pull_choice.h"

namespace thinwire {
namespace {

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("field \"", field, "\": ", what));
}

// A field that belongs to other modes must be left alone: whoever set it meant something that will
// not happen.
absl::Status CheckForeignFields(const Consistency& config) {
  const std::string& mode = config.mode();
  const bool by_push = mode == "ssp" || mode == "async";
  if (config.backup() != 0 && mode != "backup") {
    return Wrong("backup", absl::StrCat("is for mode backup, the mode is ", mode));
  }
  if (config.slack() != 0 && mode != "ssp") {
    return Wrong("slack", absl::StrCat("is for mode ssp, the mode is ", mode));
  }
  if (config.fold_every() != 1 && !by_push) {
    return Wrong("fold_every", absl::StrCat("is for modes ssp and async, the mode is ", mode));
  }
  if (config.ordered_fold() && mode != "sync") {
    return Wrong("ordered_fold", absl::StrCat("is for mode sync, the mode is ", mode));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Rule> RuleOf(const Consistency& config) {
  const uint32_t workers = config.workers();
  if (workers == 0) return Wrong("workers", "want at least 1, got 0");
  if (config.fold_every() == 0) return Wrong("fold_every", "want at least 1, got 0");
  absl::Status status = CheckForeignFields(config);
  if (!status.ok()) return status;
  if (config.mode() == "sync") return Rule::Sync(workers, config.ordered_fold());
  if (config.mode() == "ssp") return Rule::Ssp(workers, config.slack(), config.fold_every());
  if (config.mode() == "async") return Rule::Async(workers, config.fold_every());
  if (config.mode() != "backup") {
    return Wrong("mode",
                 absl::StrCat("want one of sync, backup, ssp, async, got \"", config.mode(), "\""));
  }
  if (config.backup() < workers) return Rule::Backup(workers, config.backup());
  return Wrong("backup",
               absl::StrCat("want less than the ", workers, " workers, got ", config.backup()));
}

absl::StatusOr<OptimizerSpec> OptimizerSpecOf(const Optimization& config) {
  OptimizerSpec spec;
  const auto* row = std::ranges::find(kOptimizers, config.optimizer(), &OptimizerTraits::name);
  if (row == std::end(kOptimizers)) {
    return Wrong("optimizer", absl::StrCat("unknown (got \"", config.optimizer(), "\")"));
  }
  spec.kind = static_cast<OptimizerKind>(row - std::begin(kOptimizers));
  spec.momentum = config.momentum();
  spec.beta1 = config.beta1();
  spec.beta2 = config.beta2();
  spec.epsilon = config.epsilon();
  spec.weight_decay = config.weight_decay();
  return spec;
}

absl::StatusOr<ScheduleSpec> ScheduleSpecOf(const Optimization& config) {
  ScheduleSpec spec;
  const auto* name = std::ranges::find(kScheduleNames, config.schedule());
  if (name == std::end(kScheduleNames)) {
    return Wrong("schedule", absl::StrCat("unknown (got \"", config.schedule(), "\")"));
  }
  spec.kind = static_cast<ScheduleKind>(name - std::begin(kScheduleNames));
  spec.learning_rate = config.learning_rate();
  spec.warmup = config.warmup();
  spec.decay_at.assign(config.decay_at().begin(), config.decay_at().end());
  spec.decay_factor = config.decay_factor();
  spec.power = config.power();
  return spec;
}

absl::StatusOr<SparseUpdateSpec> SparseUpdateSpecOf(const Optimization& config,
                                                    const Compression& compression) {
  SparseUpdateSpec spec{.lazy_slots = config.lazy_slots()};
  if (config.gradient_selection() == "none") return spec;
  if (config.gradient_selection() != "gtopk") {
    return Wrong("gradient_selection", absl::StrCat("want one of none, gtopk, got \"",
                                                    config.gradient_selection(), "\""));
  }
  const double density = config.selection_density();
  if (!(density > 0 && density <= 1)) {
    return Wrong("selection_density",
                 absl::StrCat("want a number above 0 and at most 1, got ", density));
  }
  spec.selection_density = density;
  spec.selection_least = compression.topk_least();
  const double part = compression.density_warmup(), first = compression.warmup_density();
  if (!(part >= 0 && part <= 1)) {
    return Wrong("density_warmup", absl::StrCat("want a part of the run from 0 to 1, got ", part));
  }
  if (!(first > 0 && first <= 1)) {
    return Wrong("warmup_density",
                 absl::StrCat("want a number above 0 and at most 1, got ", first));
  }
  spec.selection_warmup = {.part = part, .first = first};
  if (config.selection_rest() == "server") return spec;
  if (config.selection_rest() != "workers") {
    return Wrong("selection_rest", absl::StrCat("want one of server, workers, got \"",
                                                config.selection_rest(), "\""));
  }
  spec.unselected_owner = UnselectedOwner::kWorkers;
  return spec;
}

absl::StatusOr<std::optional<PublishOptions>> PublishOptionsOf(const Compression& config) {
  const PullChoice choice = ParsePull(config.pull());
  if (!choice.deltas) return std::nullopt;
  PublishOptions options;
  options.log_bytes = config.version_log_bytes();
  options.every = config.publish_every();
  if (choice.codec.empty()) return options;
  absl::StatusOr<CodecSpec> codec = ParseCodec(choice.codec);
  if (!codec.ok()) return Wrong("pull", codec.status().message());
  const absl::StatusOr<CodecSpec> values = ParseCodec(config.pull_topk_values());
  if (!values.ok()) return Wrong("pull_topk_values", values.status().message());
  codec->density = config.pull_density();
  codec->values = values->id;
  const absl::Status settings = SetCodecSettings(config, *codec);
  if (!settings.ok()) return Wrong("topk_indices", settings.message());
  const auto made = MakeCodec(*codec);
  if (!made.ok()) return Wrong("pull", made.status().message());
  options.codec = *codec;
  return options;
}

absl::StatusOr<std::unique_ptr<Job>> MakeJob(const ServerConfig& config, Epoch epoch, Clock& clock,
                                             std::pmr::memory_resource* memory) {
  if (config.servers() == 0) return Wrong("servers", "want at least 1, got 0");
  if (config.server() >= config.servers()) {
    return Wrong("server", absl::StrCat("want a number below servers, ", config.servers(), ", got ",
                                        config.server()));
  }
  const absl::StatusOr<Rule> rule = RuleOf(config.consistency());
  if (!rule.ok()) return rule.status();
  ASSIGN_OR_RETURN(const OptimizerSpec optimizer_spec, OptimizerSpecOf(config.optimization()));
  ASSIGN_OR_RETURN(auto optimizer, MakeOptimizer(optimizer_spec));
  ASSIGN_OR_RETURN(const ScheduleSpec schedule_spec, ScheduleSpecOf(config.optimization()));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Make(schedule_spec));
  const auto sparse_updates = SparseUpdateSpecOf(config.optimization(), config.compression());
  if (!sparse_updates.ok()) return sparse_updates.status();
  if (sparse_updates->unselected_owner == UnselectedOwner::kWorkers &&
      config.consistency().mode() != "sync") {
    return Wrong("selection_rest", absl::StrCat("workers is for mode sync, the mode is ",
                                                config.consistency().mode()));
  }
  const auto publish = PublishOptionsOf(config.compression());
  if (!publish.ok()) return publish.status();
  JobOptions options;
  options.sparse_updates = *sparse_updates;
  options.publish = *publish;
  options.name = config.job();
  options.server = ServerId{config.server()};
  options.server_count = config.servers();
  options.rule = *rule;
  options.lease = absl::Seconds(config.consistency().lease_seconds());
  options.start_timeout = absl::Seconds(config.consistency().start_timeout_seconds());
  options.epoch = epoch;
  options.thread_count = config.threads();
  options.memory = memory;
  if (options.lease <= absl::ZeroDuration()) {
    return Wrong("lease_seconds",
                 absl::StrCat("want more than 0, got ", config.consistency().lease_seconds()));
  }
  return std::make_unique<Job>(std::move(options), std::move(optimizer), schedule, clock);
}

}  // namespace thinwire
