#include "common/spec/job_spec.h"

#include <string_view>

#include "common/model/partition.h"

namespace thinwire {
namespace {

constexpr uint32_t kMostMembers = 1024;

constexpr absl::Duration kYear = absl::Hours(24 * 365);
constexpr absl::Duration kMaxDelay = absl::Hours(1);

// The smallest densities of a sparse delta at which training converged in measurements: with an
// optimizer that has slots (state per value, such as momentum), and with momentum correction. If a
// sparse delta contains fewer values than an update changes, the published parameters lag behind
// the masters. With momentum, every update changes every parameter, so at a low density the lag
// grows and training diverges.
constexpr double kLeastDensityWithSlots = 0.1;
constexpr double kLeastDensityWithCorrection = 0.002;

// Below this part of the workers' difference, local steps get a warning. Plain averaging has 1.
constexpr double kLeastOuterPart = 0.1;

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > 63 || name.front() == '-' || name.back() == '-') return false;
  for (char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) return false;
  }
  return true;
}

void RequireDuration(std::string_view field, absl::Duration got, Problems& problems) {
  problems.Require(got > absl::ZeroDuration() && got <= kYear, field,
                   "above 0 and at most a year of seconds", absl::ToDoubleSeconds(got));
}

// Called if the job has a sparse pull and the setting SETTING, with which training can diverge.
// Adds a problem, except for the pulls with which training converged in measurements: delta_topk
// with a density of at least LEAST_DENSITY and, if NEEDS_WARMUP is true, with a density warm-up of
// the pushes.
void CheckSparsePull(const JobSpec& job, double least_density, bool needs_warmup,
                     std::string_view setting, std::string_view alternative, Problems& problems) {
  const CodecSpec& codec = *job.publish->codec;
  const bool warmed_up = !needs_warmup || job.push.warmup.density.part > 0;
  if (codec.id == CodecId::kTopK && codec.density >= least_density && warmed_up) return;
  problems.Add(
      "pull",
      absl::StrCat("diverges with ", std::string(setting),
                   " (expected delta_topk with pull_density of at least ", least_density,
                   needs_warmup ? " and a density_warmup above 0" : "", ", or ",
                   std::string(alternative), ", got delta_", std::string(CodecName(codec.id)),
                   " with pull_density ", codec.density, ")"));
}

// Returns the first optimizer of the job's groups with which HOLDS returns true, or null.
template <typename Condition>
const OptimizerTraits* FindOptimizer(const JobSpec& job, const Condition& holds) {
  for (const GroupSpec& group : job.AllGroups()) {
    const OptimizerTraits& traits = Traits(group.optimizer.kind);
    if (holds(traits)) return &traits;
  }
  return nullptr;
}

void CheckSparsePull(const JobSpec& job, Problems& problems) {
  if (!job.publish.has_value() || !job.publish->codec.has_value()) return;
  if (IsDense(job.publish->codec->id)) return;
  const auto has_slots = [](const OptimizerTraits& traits) { return traits.has_slots; };
  const OptimizerTraits* const optimizer = FindOptimizer(job, has_slots);
  if (optimizer != nullptr && !job.sparse_updates.lazy_slots) {
    CheckSparsePull(
        job, kLeastDensityWithSlots, /*needs_warmup=*/false,
        absl::StrCat("optimizer: ", std::string(optimizer->name), " without lazy_slots"),
        "delta with lazy_slots, or delta_fp8_e5m2", problems);
  }
  if (job.push.correction.enabled) {
    CheckSparsePull(job, kLeastDensityWithCorrection, /*needs_warmup=*/true, "momentum_correction",
                    "delta", problems);
  }
}

void CheckCombinations(const JobSpec& job, Problems& problems) {
  if (job.push.adaptive.has_value() && job.rule.mode() != "sync") {
    // A trial begins and ends between two steps of all workers.
    problems.Add("push", absl::StrCat("adaptive is only valid with mode: sync (got mode: ",
                                      std::string(job.rule.mode()), ")"));
  }
  if (job.push.adaptive.has_value() && job.auto_rule) {
    problems.Add("push", "adaptive is only valid without auto_backup (got auto_backup: true)");
  }
  if (job.push.adaptive.has_value() &&
      job.sparse_updates.unselected_owner == UnselectedOwner::kWorkers) {
    problems.Add("push", "adaptive is only valid with selection_rest: server (got workers)");
  }
  if (job.push.adaptive.has_value() && job.task.local.enabled()) {
    // A trial would have to begin with the saved state of each local optimizer.
    problems.Add("push", absl::StrCat("adaptive is only valid with local_steps: 1 (got ",
                                      job.task.local.count, ")"));
  }
  if (job.push.adaptive.has_value() && job.recovery.retention.best_count > 0) {
    // The lead then makes only the checkpoints with which trials begin.
    problems.Add("keep_best", "only valid with a push other than adaptive (got push: adaptive)");
  }
  if (job.push.adaptive.has_value() && job.task.loss == LossKind::kScript) {
    problems.Add(
        "push",
        "adaptive compares test accuracies (expected another push with loss: script, which "
        "has none)");
  }
  problems.Require(job.task.train_examples == 0 || job.task.train_examples >= job.rule.workers,
                   "train_examples",
                   absl::StrCat("0 or at least ", job.rule.workers, ", the value of workers"),
                   job.task.train_examples);
  CheckSparsePull(job, problems);
  const OptimizerTraits* const second_momentum =
      FindOptimizer(job, [](const OptimizerTraits& traits) { return traits.has_velocity; });
  if (job.push.correction.enabled && second_momentum != nullptr) {
    problems.Add("momentum_correction",
                 absl::StrCat("a second momentum (expected false, or optimizer: sgd, got true with "
                              "optimizer: ",
                              std::string(second_momentum->name), ")"));
  }
  const OptimizerTraits* const of_tensors =
      FindOptimizer(job, [](const OptimizerTraits& traits) { return traits.reads_norms; });
  if (job.sparse_updates.lazy_slots && of_tensors != nullptr) {
    problems.Add("lazy_slots",
                 absl::StrCat("no norms of tensors in a sparse update (expected false, or another "
                              "optimizer, got true with optimizer: ",
                              std::string(of_tensors->name), ")"));
  }
}

void CheckStaleness(const JobSpec& job, Problems& problems) {
  if (job.staleness.policy == StalenessPolicy::kScale && job.rule.fold_every == 1 &&
      Traits(job.optimizer.kind).reads_only_signs) {
    // An update then consists of one gradient, whose magnitude the optimizer does not read.
    problems.Add("staleness_policy", absl::StrCat("scale has no effect with optimizer: ",
                                                  std::string(Traits(job.optimizer.kind).name),
                                                  " (expected fold_every: 2 or more, got 1)"));
  }
  if (job.staleness.policy != StalenessPolicy::kDcasgd) return;
  if (!job.publish.has_value()) {
    // The servers find the parameters of a gradient in the log of published deltas.
    problems.Add("staleness_policy",
                 absl::StrCat("dcasgd is only valid with pull: delta or delta_CODEC (got pull: ",
                              std::string(CodecName(job.pull_codec)), ")"));
  }
  if (job.recovery.durability == Durability::kLog) {
    // A checkpoint does not contain this log, so a replay would not give the same bits.
    problems.Add("staleness_policy",
                 "dcasgd is only valid with durability: none or checkpoint (got durability: log)");
  }
}

// Returns a function require(good, expected, got), which adds to PROBLEMS, unless GOOD, the text
// "FIELD: SUBJECT only valid with EXPECTED (got GOT)". The arguments must outlive the function.
auto OnlyValidWith(std::string_view field, std::string_view subject, Problems& problems) {
  return [=, &problems](bool good, std::string_view expected, std::string_view got) {
    if (good) return;
    problems.Add(field, absl::StrCat(std::string(subject), "only valid with ",
                                     std::string(expected), " (got ", std::string(got), ")"));
  };
}

void CheckClipping(const JobSpec& job, Problems& problems) {
  problems.RequireFloat("clip_norm", job.clip_norm);
  if (job.clip_norm == 0) return;
  const auto require = OnlyValidWith("clip_norm", "", problems);
  // gTop-k adds the values that earlier rounds did not select, after the norm is known.
  require(!job.sparse_updates.selection_density.has_value(), "gradient_selection: none",
          "gradient_selection: gtopk");
  // A server alone cannot repeat the decisions of all servers.
  require(job.recovery.durability != Durability::kLog, "durability: none or checkpoint",
          "durability: log");
  require(!job.push.adaptive.has_value(), "a push other than adaptive", "push: adaptive");
  require(!Traits(job.optimizer.kind).reads_only_signs,
          "an optimizer that reads the gradient's magnitude",
          absl::StrCat("optimizer: ", std::string(Traits(job.optimizer.kind).name)));
}

// Checks a job whose servers hold averages of gradients. A worker that misses an average would
// continue with other parameters than the others.
void CheckAverage(const JobSpec& job, Problems& problems) {
  if (FindOptimizer(job, [](const OptimizerTraits& t) { return t.holds_average; }) == nullptr) {
    return;
  }
  const auto require = OnlyValidWith("optimizer", "average is ", problems);
  require(job.rule.mode() == "sync", "mode: sync",
          absl::StrCat("mode: ", std::string(job.rule.mode())));
  require(job.recovery.durability != Durability::kCheckpoint, "durability: none or log",
          "durability: checkpoint");
  require(!job.publish.has_value(), "a pull other than delta and delta_CODEC", "pull: delta");
  require(!job.push.adaptive.has_value(), "a push other than adaptive", "push: adaptive");
  for (size_t i = 0; i < job.groups.size(); ++i) {
    const GroupSpec& group = job.groups[i];
    const std::string place = absl::StrCat("parameter_group[", i, "]");
    require(
        group.optimizer.kind == job.optimizer.kind, "one optimizer for all tensors",
        absl::StrCat(place, " with optimizer: ", std::string(Traits(group.optimizer.kind).name)));
    require(group.learning_rate_factor == 1 && group.optimizer.weight_decay == 0,
            "groups without learning_rate_factor and weight_decay", place);
  }
}

// Every process knows its own tensors only.
void CheckMembers(const JobSpec& job, Problems& problems) {
  const auto refuse = [&](bool given, const char* field, const std::string& expected,
                          const std::string& got) {
    if (!given) return;
    problems.Add(field, absl::StrCat("not possible with members above 1 (expected ", expected,
                                     ", got ", got, ")"));
  };
  refuse(job.push.gradient_clip > 0, "gradient_clip", "0, or clip_norm in its place",
         absl::StrCat(job.push.gradient_clip));
  refuse(job.push.adaptive.has_value(), "push", "another", "adaptive");
  refuse(job.schedule.grows_batch(), "schedule", "another", "noise_scale");
  refuse(job.task.local.fragments > 1, "fragments", "1", absl::StrCat(job.task.local.fragments));
  refuse(job.task.local.by_speed, "auto_local_steps", "false", "true");
}

// Checks a job whose batch grows.
void CheckBatchGrowth(const JobSpec& job, Problems& problems) {
  if (job.rule.fold == Fold::kRound && job.rule.quorum < 2) {
    problems.Add("schedule",
                 absl::StrCat("noise_scale compares the gradients of an update (expected at least "
                              "2 of them, workers minus backup, got ",
                              job.rule.quorum, ")"));
  }
  if (job.rule.ordered_fold) {
    // The lead announces a larger batch a few seconds ahead, so its step depends on the time.
    problems.Add("ordered_fold",
                 "does not make runs equal with schedule: noise_scale (expected false, got true)");
  }
  if (job.task.local.enabled()) {
    problems.Add("local_steps",
                 absl::StrCat("a push is no gradient, so it has no noise scale (expected 1 with "
                              "schedule: noise_scale, got ",
                              job.task.local.count, ")"));
  }
  // These settings count the planned steps, which become fewer.
  const auto refuse = [&problems](std::string_view field, double part) {
    if (part == 0) return;
    problems.Add(field, absl::StrCat("a part of a number of steps that changes (expected 0 with "
                                     "schedule: noise_scale, got ",
                                     part, ")"));
  };
  refuse("density_warmup", job.push.warmup.density.part);
  refuse("first_push_part", job.push.warmup.first_part);
  if (job.push.adaptive.has_value()) {
    problems.Add("push",
                 "adaptive is only valid with another schedule (got schedule: noise_scale)");
  }
  const uint64_t first = job.rule.quorum * job.task.gradient_examples();
  const uint64_t largest = job.schedule.growth.largest_batch;
  if (largest != 0 && largest < first) {
    problems.Add("largest_batch", absl::StrCat("below the first batch (expected 0 or at least ",
                                               first, ", got ", largest, ")"));
  }
}

// Warns about exact deltas that contain nearly every value, because every update changes nearly
// every value.
void WarnOfThickDeltas(const JobSpec& job, Problems& warnings) {
  if (!job.publish.has_value() || job.publish->codec.has_value()) return;
  const bool sparse_push =
      !job.push.choose.has_value() && !job.push.adaptive.has_value() && IsSparse(job.push.codec.id);
  if (!sparse_push && !job.sparse_updates.selection_density.has_value()) {
    warnings.Add(
        "pull",
        "saves few bytes, because dense pushes change every value (expected push: topk, or "
        "pull: delta_fp8_e5m2 or fp32, got delta)");
    return;
  }
  if (job.sparse_updates.lazy_slots) return;
  std::string reason;
  if (Traits(job.optimizer.kind).has_velocity) {
    reason = absl::StrCat("optimizer: ", std::string(Traits(job.optimizer.kind).name));
  } else if (job.optimizer.weight_decay > 0) {
    reason = absl::StrCat("weight_decay: ", job.optimizer.weight_decay);
  } else {
    return;
  }
  warnings.Add("pull", absl::StrCat("saves few bytes, because without lazy_slots every update "
                                    "changes every value (expected lazy_slots: true, or pull: "
                                    "delta_fp8_e5m2, got delta with ",
                                    reason, ")"));
}

// Warns about local steps whose servers use only a small part of the workers' difference.
void WarnOfSmallOuterSteps(const JobSpec& job, Problems& warnings) {
  const OptimizerKind kind = job.optimizer.kind;
  const bool moves_by_rate = kind == OptimizerKind::kSgd || kind == OptimizerKind::kMomentum ||
                             kind == OptimizerKind::kNesterov;
  if (!job.task.local.enabled() || !moves_by_rate) return;
  double part = job.schedule.learning_rate;
  if (Traits(kind).uses_momentum) part /= 1 - job.optimizer.momentum;
  if (job.push.correction.enabled) part /= 1 - job.push.correction.momentum;
  if (job.rule.fold == Fold::kPush) part *= 1.0 * job.rule.workers / job.rule.fold_every;
  if (part >= kLeastOuterPart) return;
  warnings.Add("learning_rate",
               absl::StrCat("small for local steps, because the servers multiply the difference "
                            "of the workers' parameters by it (expected about 1 with optimizer: "
                            "sgd, or 0.7 with nesterov, got ",
                            job.schedule.learning_rate, ")"));
}

}  // namespace

Problems ModeProblems(const Rule& rule, const SparseUpdateSpec& sparse_updates,
                      const std::optional<PublishOptions>& publish, const StalenessSpec& staleness,
                      bool grows_batch, double clip_norm) {
  Problems problems;
  const std::string mode(rule.mode());
  if (grows_batch && rule.fold == Fold::kPush) {
    // The noise scale follows from the gradients of a round.
    problems.Add(
        "schedule",
        absl::StrCat("noise_scale is only valid with mode: sync or backup (got mode: ", mode, ")"));
  }
  if (sparse_updates.unselected_owner == UnselectedOwner::kWorkers && mode != "sync") {
    // Unselected values can return to workers only in mode sync. In modes ssp and async, a push
    // belongs to no round. In mode backup, a worker may skip the answer of a round.
    problems.Add("selection_rest",
                 absl::StrCat("workers is only valid with mode: sync (got mode: ", mode, ")"));
  }
  if (clip_norm > 0 && mode != "sync") {
    // In the other modes, the shards of an update may have the gradients of different workers.
    problems.Add("clip_norm", absl::StrCat("only valid with mode: sync (got mode: ", mode, ")"));
  }
  if (rule.fold == Fold::kPush) return problems;
  if (publish.has_value() && publish->every != 0) {
    problems.Add("publish_every",
                 absl::StrCat("only valid with mode: ssp or async (got mode: ", mode, ")"));
  }
  if (staleness.policy != StalenessPolicy::kNone) {
    const std::string name(kStalenessPolicyNames[static_cast<size_t>(staleness.policy)]);
    problems.Add(
        "staleness_policy",
        absl::StrCat(name, " is only valid with mode: ssp or async (got mode: ", mode, ")"));
  }
  return problems;
}

Problems JobSpec::Validate() const {
  Problems problems;
  if (!IsName(name)) {
    problems.Add(
        "name",
        absl::StrCat("not a name (expected 1 to 63 of a-z, 0-9 and inner -, got \"", name, "\")"));
  }
  problems.RequireInteger("servers", server_count, 1, kMostServers);
  problems.Append(rule.Validate());
  problems.RequireInteger("members", members, 1, kMostMembers);
  if (auto_rule && rule.workers == 1) {
    problems.Add(rule.fold == Fold::kRound ? "auto_backup" : "auto_slack",
                 "only valid with several workers (expected workers: 2 or more, got 1)");
  }
  problems.Append(staleness.Validate());
  RequireDuration("lease_seconds", lease, problems);
  RequireDuration("start_timeout_seconds", start_timeout, problems);
  RequireDuration("drain_seconds", drain, problems);
  problems.Append(optimizer.Validate());
  problems.Append(schedule.Validate());
  problems.Append(sparse_updates.Validate());
  problems.Append(push.Validate());
  if (publish.has_value()) {
    problems.Append(publish->Validate());
  } else if (!CarriesParameters(pull_codec)) {
    problems.Add("pull", absl::StrCat("not a codec of parameters (got ",
                                      std::string(CodecName(pull_codec)), ")"));
  }
  problems.RequireInteger("shard_size", shard_size, 0, kLargestShardSize);
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string place = absl::StrCat("parameter_group[", i, "]");
    problems.Append(groups[i].Validate(place, optimizer, schedule));
    if (groups[i].push.has_value() && push.choose.has_value()) {
      problems.Add(place + ".push", "only valid with a push other than auto and fastest");
    }
  }
  problems.Append(task.Validate());
  RequireDuration("silence_seconds", silence, problems);
  if (recovery.checkpoint_interval != absl::ZeroDuration()) {
    RequireDuration("checkpoint_seconds", recovery.checkpoint_interval, problems);
  }
  RequireDuration("failure_seconds", recovery.failure_interval, problems);
  RequireDuration("server_return_seconds", recovery.server_return, problems);
  problems.Require(recovery.retention.newest_count >= 1 && recovery.retention.newest_count <= 1000,
                   "keep_checkpoints", "from 1 to 1000", recovery.retention.newest_count);
  problems.Require(recovery.retention.best_count <= 1000, "keep_best", "from 0 to 1000",
                   recovery.retention.best_count);
  for (size_t i = 0; i < stragglers.size(); ++i) {
    const std::string field = absl::StrCat("straggler[", i, "]");
    problems.Require(stragglers[i].worker.value < rule.workers, field,
                     absl::StrCat("a worker below ", rule.workers, ", the value of workers"),
                     stragglers[i].worker.value);
    problems.Require(
        stragglers[i].delay >= absl::ZeroDuration() && stragglers[i].delay <= kMaxDelay, field,
        "a delay of 0s to 1h", absl::FormatDuration(stragglers[i].delay));
  }
  problems.Append(
      ModeProblems(rule, sparse_updates, publish, staleness, schedule.grows_batch(), clip_norm));
  CheckClipping(*this, problems);
  CheckAverage(*this, problems);
  CheckCombinations(*this, problems);
  CheckStaleness(*this, problems);
  if (members > 1) CheckMembers(*this, problems);
  if (schedule.grows_batch()) CheckBatchGrowth(*this, problems);
  return problems;
}

Problems JobSpec::ProcessProblems() const {
  Problems problems;
  if (push.adaptive.has_value() && recovery.durability != Durability::kCheckpoint) {
    problems.Add("push",
                 absl::StrCat("adaptive returns to checkpoints (expected durability: "
                              "checkpoint, got durability: ",
                              recovery.durability == Durability::kLog ? "log" : "none", ")"));
  }
  return problems;
}

std::vector<GroupSpec> JobSpec::AllGroups() const {
  std::vector<GroupSpec> all = {{.match = "*", .optimizer = optimizer}};
  all.insert(all.end(), groups.begin(), groups.end());
  for (GroupSpec& group : all) group.apart = members > 1;
  return all;
}

absl::Duration JobSpec::DelayOf(WorkerId worker) const {
  absl::Duration delay;
  for (const Straggler& straggler : stragglers) {
    if (straggler.worker == worker) delay = straggler.delay;
  }
  return delay;
}

Problems JobSpec::Warnings() const {
  Problems warnings;
  WarnOfThickDeltas(*this, warnings);
  WarnOfSmallOuterSteps(*this, warnings);
  return warnings;
}

std::ostream& operator<<(std::ostream& out, const JobSpec& spec) {
  out << spec.name << ": " << spec.server_count << " servers, " << spec.rule << "; ";
  if (spec.members > 1) out << spec.members << " members; ";
  out << spec.staleness << "; " << spec.optimizer << "; " << spec.schedule << "; "
      << spec.sparse_updates << "; push " << spec.push;
  for (const GroupSpec& group : spec.groups) out << "; group " << group;
  out << "; pull ";
  if (spec.publish.has_value()) {
    out << *spec.publish;
  } else {
    out << spec.pull_codec;
  }
  return out << "; " << spec.recovery << "; " << spec.task;
}

}  // namespace thinwire
