#include "common/spec/job_spec.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace thinwire {
namespace {

std::string Error(const JobSpec& job) { return std::string(job.Validate().ToStatus().message()); }

// Returns the field of the first problem of JOB, or "" if JOB has no problem.
std::string Field(const JobSpec& job) {
  const Problems problems = job.Validate();
  return problems.empty() ? "" : problems.list()[0].field;
}

std::optional<PublishOptions> Deltas(CodecId id, double density = 0.01) {
  return PublishOptions{.codec = CodecSpec{.id = id, .density = density}};
}

JobSpec With(OptimizerKind kind, std::optional<PublishOptions> publish, bool lazy_slots = false) {
  JobSpec job;
  job.optimizer.kind = kind;
  job.sparse_updates.lazy_slots = lazy_slots;
  job.publish = publish;
  return job;
}

constexpr OptimizerKind kWithSlots[] = {OptimizerKind::kMomentum, OptimizerKind::kNesterov,
                                        OptimizerKind::kAdam, OptimizerKind::kAdamW,
                                        OptimizerKind::kAdagrad};

TEST(JobSpecTest, TheDefaultsAreValid) { EXPECT_EQ(Error({}), ""); }

TEST(JobSpecTest, TheProblemsOfAllPartsAreReportedTogether) {
  JobSpec job;
  job.name = "My Job";
  job.server_count = 0;
  job.optimizer.momentum = 1;
  job.task.epochs = 0;
  EXPECT_EQ(Error(job),
            "name: not a name (expected 1 to 63 of a-z, 0-9 and inner -, got \"My Job\")\n"
            "servers: out of range (expected 1 to 4096, got 0)\n"
            "momentum: out of range (expected at least 0 and below 1, got 1)\n"
            "epochs: out of range (expected at least 1, got 0)");
}

TEST(JobSpecTest, DurationsAreAboveZeroAndAtMostAYear) {
  for (absl::Duration wrong : {absl::ZeroDuration(), absl::Seconds(-1), absl::InfiniteDuration()}) {
    EXPECT_EQ(Field({.lease = wrong}), "lease_seconds");
    EXPECT_EQ(Field({.start_timeout = wrong}), "start_timeout_seconds");
    EXPECT_EQ(Field({.silence = wrong}), "silence_seconds");
    EXPECT_EQ(Field({.drain = wrong}), "drain_seconds");
    EXPECT_EQ(Field({.recovery = {.failure_interval = wrong}}), "failure_seconds");
    EXPECT_EQ(Field({.recovery = {.server_return = wrong}}), "server_return_seconds");
    // 0 means: chosen from the cost of a checkpoint.
    if (wrong == absl::ZeroDuration()) continue;
    EXPECT_EQ(Field({.recovery = {.checkpoint_interval = wrong}}), "checkpoint_seconds");
  }
}

TEST(JobSpecTest, AStragglerIsAWorkerOfTheJobWithADelay) {
  EXPECT_EQ(Error({.stragglers = {{WorkerId{0}, absl::Milliseconds(50)}}}), "");
  EXPECT_EQ(Error({.stragglers = {{WorkerId{1}, absl::Milliseconds(50)}}}),
            "straggler[0]: out of range (expected a worker below 1, the value of workers, got 1)");
  EXPECT_EQ(Error({.stragglers = {{WorkerId{0}, absl::Hours(2)}}}),
            "straggler[0]: out of range (expected a delay of 0s to 1h, got 2h)");
}

TEST(JobSpecTest, WholeParametersNeedACodecThatCarriesThem) {
  EXPECT_EQ(Error({.pull_codec = CodecId::kBf16}), "");
  EXPECT_EQ(Error({.pull_codec = CodecId::kTopK}), "pull: not a codec of parameters (got topk)");
}

TEST(JobSpecTest, UnselectedValuesGoBackToTheWorkersInSyncOnly) {
  JobSpec job;
  job.sparse_updates.selection_density = 0.01;
  job.sparse_updates.unselected_owner = UnselectedOwner::kWorkers;
  EXPECT_EQ(Error(job), "");
  job.rule = Rule::Ssp(4, 2);
  EXPECT_EQ(Error(job), "selection_rest: workers is only valid with mode: sync (got mode: ssp)");
}

TEST(JobSpecTest, ANarrowSparsePullBesideSlotsIsRefused) {
  for (OptimizerKind kind : kWithSlots) {
    EXPECT_EQ(Field(With(kind, Deltas(CodecId::kTopK))), "pull") << kind;
  }
  EXPECT_EQ(Field(With(OptimizerKind::kMomentum, Deltas(CodecId::kTopK, 0.099))), "pull");
  EXPECT_EQ(Field(With(OptimizerKind::kMomentum, Deltas(CodecId::kRandomK, 1))), "pull");
}

TEST(JobSpecTest, AWideOrExactOrDensePullGoesWithAnyOptimizer) {
  for (OptimizerKind kind : kWithSlots) {
    EXPECT_EQ(Field(With(kind, Deltas(CodecId::kTopK, 0.1))), "") << kind;
    EXPECT_EQ(Field(With(kind, std::nullopt)), "") << kind;
    EXPECT_EQ(Field(With(kind, PublishOptions{})), "") << kind;
    EXPECT_EQ(Field(With(kind, Deltas(CodecId::kFp8E5m2))), "") << kind;
    EXPECT_EQ(Field(With(kind, Deltas(CodecId::kFp16))), "") << kind;
  }
}

TEST(JobSpecTest, ANarrowSparsePullGoesWithSgdAndWithLazySlots) {
  for (CodecId id : {CodecId::kTopK, CodecId::kRandomK}) {
    EXPECT_EQ(Field(With(OptimizerKind::kSgd, Deltas(id))), "") << id;
    EXPECT_EQ(Field(With(OptimizerKind::kMomentum, Deltas(id), /*lazy_slots=*/true)), "") << id;
  }
}

TEST(JobSpecTest, MomentumCorrectionNeedsAWideSparsePullAndAWarmUp) {
  const auto field = [](CodecId id, double density, double warmup) {
    JobSpec job;
    job.push = {.codec = {.id = CodecId::kTopK},
                .warmup = {.density = {.part = warmup}},
                .correction = {.enabled = true}};
    job.publish = Deltas(id, density);
    return Field(job);
  };
  EXPECT_EQ(field(CodecId::kTopK, .001, 0), "pull");
  EXPECT_EQ(field(CodecId::kTopK, .001, .5), "pull");
  EXPECT_EQ(field(CodecId::kTopK, .002, 0), "pull");
  EXPECT_EQ(field(CodecId::kRandomK, .002, .5), "pull");
  EXPECT_EQ(field(CodecId::kTopK, .002, .5), "");
  EXPECT_EQ(field(CodecId::kFp8E5m2, .001, 0), "");
}

TEST(JobSpecTest, TwoMomentaAreRefused) {
  const auto field = [](OptimizerKind kind, bool lazy_slots) {
    JobSpec job = With(kind, std::nullopt, lazy_slots);
    job.push.correction.enabled = true;
    return Field(job);
  };
  for (OptimizerKind kind : {OptimizerKind::kMomentum, OptimizerKind::kNesterov,
                             OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    EXPECT_EQ(field(kind, false), "momentum_correction") << kind;
  }
  EXPECT_EQ(field(OptimizerKind::kMomentum, true), "momentum_correction");
  EXPECT_EQ(field(OptimizerKind::kSgd, false), "");
  EXPECT_EQ(field(OptimizerKind::kAdagrad, false), "");
}

TEST(JobSpecTest, LazySlotsGoWithDensePushes) {
  JobSpec job = With(OptimizerKind::kMomentum, std::nullopt, /*lazy_slots=*/true);
  job.push.codec.id = CodecId::kFp8E5m2;
  EXPECT_EQ(Field(job), "");
}

// Returns the field and the settings that the first warning of JOB names, or "" without a warning.
std::string Warning(const JobSpec& job) {
  const Problems warnings = job.Warnings();
  if (warnings.empty()) return "";
  const std::string& text = warnings.list()[0].text;
  return warnings.list()[0].field + ": " + text.substr(text.find("(expected"));
}

TEST(JobSpecTest, ASmallLearningRateForTheDifferenceOfLocalStepsIsWarnedOf) {
  JobSpec job;
  job.schedule.learning_rate = 0.01;
  EXPECT_EQ(Warning(job), "");
  job.task.local.count = 8;
  EXPECT_EQ(
      Warning(job),
      "learning_rate: (expected about 1 with optimizer: sgd, or 0.7 with nesterov, got 0.01)");
  job.optimizer.kind = OptimizerKind::kMomentum;
  EXPECT_EQ(Warning(job), "");
  job.optimizer.kind = OptimizerKind::kAdam;
  EXPECT_EQ(Warning(job), "");
  job.optimizer.kind = OptimizerKind::kSgd;
  job.rule = Rule::Async(8);
  job.schedule.learning_rate = 0.02;
  EXPECT_EQ(Warning(job), "");
}

TEST(JobSpecTest, AnExactDeltaThatContainsEveryValueIsWarnedOf) {
  JobSpec job = With(OptimizerKind::kSgd, PublishOptions());
  EXPECT_EQ(Warning(job),
            "pull: (expected push: topk, or pull: delta_fp8_e5m2 or fp32, got delta)");
  job.push.codec.id = CodecId::kTopK;
  EXPECT_EQ(Warning(job), "");
  job.optimizer.weight_decay = 1e-4;
  EXPECT_EQ(Warning(job),
            "pull: (expected lazy_slots: true, or pull: delta_fp8_e5m2, got delta with "
            "weight_decay: 0.0001)");
  job.optimizer.kind = OptimizerKind::kAdam;
  EXPECT_EQ(Warning(job),
            "pull: (expected lazy_slots: true, or pull: delta_fp8_e5m2, got delta with "
            "optimizer: adam)");
  job.sparse_updates.lazy_slots = true;
  EXPECT_EQ(Warning(job), "");
}

TEST(JobSpecTest, ADeltaThatIsThinOrOfACodecIsNotWarnedOf) {
  EXPECT_EQ(Warning(With(OptimizerKind::kMomentum, std::nullopt)), "");
  EXPECT_EQ(Warning(With(OptimizerKind::kMomentum, Deltas(CodecId::kFp8E5m2))), "");
  JobSpec gtopk = With(OptimizerKind::kSgd, PublishOptions());
  gtopk.sparse_updates.selection_density = 0.01;
  EXPECT_EQ(Warning(gtopk), "");
}

TEST(JobSpecTest, EveryWorkerNeedsATrainingExample) {
  JobSpec job;
  job.rule = Rule::Sync(4);
  job.task.train_examples = 3;
  EXPECT_EQ(Error(job),
            "train_examples: out of range (expected 0 or at least 4, the value of workers, got 3)");
  job.task.train_examples = 4;
  EXPECT_EQ(Error(job), "");
}

TEST(JobSpecTest, PublishEveryNeedsAModeThatFoldsByPush) {
  const auto field = [](const Rule& rule) {
    return Field({.rule = rule, .publish = PublishOptions{.every = 3}});
  };
  EXPECT_EQ(field(Rule::Ssp(2, 1)), "");
  EXPECT_EQ(field(Rule::Async(2)), "");
  EXPECT_EQ(field(Rule::Sync(2)), "publish_every");
  EXPECT_EQ(field(Rule::Backup(2, 1)), "publish_every");
}

TEST(JobSpecTest, TheMessageNamesTheAlternatives) {
  EXPECT_EQ(Error(With(OptimizerKind::kAdam, Deltas(CodecId::kTopK))),
            "pull: diverges with optimizer: adam without lazy_slots (expected delta_topk with "
            "pull_density of at least 0.1, or delta with lazy_slots, or delta_fp8_e5m2, got "
            "delta_topk with pull_density 0.01)");
}

TEST(JobSpecTest, AStalenessPolicyRequiresAModeWithStaleness) {
  const auto error = [](const Rule& rule, const StalenessSpec& staleness) {
    return Error({.rule = rule, .staleness = staleness});
  };
  const StalenessSpec drop = {.policy = StalenessPolicy::kDrop, .bound = 4};
  const StalenessSpec scale = {.policy = StalenessPolicy::kScale};
  EXPECT_EQ(error(Rule::Async(2), drop), "");
  EXPECT_EQ(error(Rule::Ssp(2, 1), scale), "");
  EXPECT_EQ(error(Rule::Sync(2), {}), "");
  EXPECT_EQ(error(Rule::Sync(2), drop),
            "staleness_policy: drop is only valid with mode: ssp or async (got mode: sync)");
  EXPECT_EQ(error(Rule::Backup(2, 1), scale),
            "staleness_policy: scale is only valid with mode: ssp or async (got mode: backup)");
  EXPECT_EQ(error(Rule::Async(2), {.policy = StalenessPolicy::kDrop}),
            "staleness_policy: drop requires a staleness_bound (expected at least 1, got 0)");
}

TEST(JobSpecTest, DcasgdRequiresDeltasAndNoEventLog) {
  JobSpec job = {.rule = Rule::Async(2),
                 .staleness = {.policy = StalenessPolicy::kDcasgd},
                 .publish = PublishOptions{}};
  EXPECT_EQ(Error(job), "");
  job.recovery.durability = Durability::kCheckpoint;
  EXPECT_EQ(Error(job), "");
  job.recovery.durability = Durability::kLog;
  EXPECT_EQ(Error(job),
            "staleness_policy: dcasgd is only valid with durability: none or checkpoint (got "
            "durability: log)");
  job.recovery.durability = Durability::kNone;
  job.publish = std::nullopt;
  EXPECT_EQ(Error(job),
            "staleness_policy: dcasgd is only valid with pull: delta or delta_CODEC (got pull: "
            "fp32)");
}

TEST(JobSpecTest, PrintsEveryPart) {
  std::ostringstream out;
  out << JobSpec{.rule = Rule::Ssp(4, 2), .publish = PublishOptions{}};
  EXPECT_EQ(
      out.str(),
      "train: 1 servers, ssp(2) of 4, fold_every 1; staleness policy none; sgd weight_decay 0; "
      "constant "
      "learning_rate 0.01 warmup 0; dense slots; push fp32; pull deltas exact, log of 4194304 "
      "bytes, every 0; durability none; cnn on fashion_mnist, batch_size 32, epochs 1, seed 1, "
      "fp32");
}

TEST(JobSpecTest, AGrowingBatchNeedsTheGradientsOfARound) {
  JobSpec job;
  job.schedule.kind = ScheduleKind::kNoiseScale;
  EXPECT_EQ(Error(job),
            "schedule: noise_scale compares the gradients of an update (expected at least 2 of "
            "them, workers minus backup, got 1)");
  job.rule = Rule::Backup(3, 2);
  EXPECT_EQ(Field(job), "schedule");
  job.rule = Rule::Async(2);
  EXPECT_EQ(Error(job),
            "schedule: noise_scale is only valid with mode: sync or backup (got mode: async)");
  job.rule = Rule::Ssp(2, 1);
  EXPECT_EQ(Field(job), "schedule");
  job.rule = Rule::Backup(3, 1);
  EXPECT_EQ(Error(job), "");
  job.rule = Rule::Sync(2);
  EXPECT_EQ(Error(job), "");
}

TEST(JobSpecTest, AGrowingBatchRefusesSettingsThatItWouldChange) {
  JobSpec grows;
  grows.rule = Rule::Sync(2);
  grows.schedule.kind = ScheduleKind::kNoiseScale;
  JobSpec ordered = grows;
  ordered.rule.ordered_fold = true;
  EXPECT_EQ(Error(ordered),
            "ordered_fold: does not make runs equal with schedule: noise_scale (expected false, "
            "got true)");
  JobSpec local = grows;
  local.task.local.count = 2;
  EXPECT_EQ(Error(local),
            "local_steps: a push is no gradient, so it has no noise scale (expected 1 with "
            "schedule: noise_scale, got 2)");
  JobSpec warmup = grows;
  warmup.push.warmup.density.part = 0.25;
  EXPECT_EQ(Error(warmup),
            "density_warmup: a part of a number of steps that changes (expected 0 with schedule: "
            "noise_scale, got 0.25)");
  JobSpec first = grows;
  first.push.warmup.first_part = 0.5;
  EXPECT_EQ(Field(first), "first_push_part");
  JobSpec adaptive = grows;
  adaptive.push.adaptive = AdaptiveSpec{.arms = {{.fastest = true}}};
  EXPECT_NE(Error(adaptive).find("push: adaptive is only valid with another schedule (got "
                                 "schedule: noise_scale)"),
            std::string::npos);
  JobSpec small = grows;
  small.task.batch_size = 8;
  small.task.accumulate = 4;
  small.schedule.growth.largest_batch = 63;
  EXPECT_EQ(Error(small),
            "largest_batch: below the first batch (expected 0 or at least 64, got 63)");
  small.schedule.growth.largest_batch = 64;
  EXPECT_EQ(Error(small), "");
}

}  // namespace
}  // namespace thinwire
