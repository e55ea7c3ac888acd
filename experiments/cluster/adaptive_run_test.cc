#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/testing/quadratic_task.h"

namespace thinwire::lab {
namespace {

constexpr uint64_t kSteps = 90;
// All processes return to a snapshot within this time: the lead asks the servers every 100 ms, and
// the workers join again.
constexpr double kReturnSeconds = 2;
const QuadraticPlan kPlan = {.workers = 3, .steps = kSteps};

// A job with slow links, so that a step of fp32 takes longer than one of fp8.
RunSpec SpecOf(std::vector<CodecId> arms) {
  RunSpec spec;
  spec.job.rule = Rule::Sync(3, /*ordered_fold=*/true);
  spec.job.server_count = 2;
  spec.job.shard_size = 4096;
  spec.job.schedule.learning_rate = 0.05;
  spec.job.pull_codec = CodecId::kFp8E4m3;
  spec.job.push.adaptive = {.speculate_steps = 10, .continue_steps = 30};
  for (const CodecId id : arms) spec.job.push.adaptive->arms.push_back({.codec = {.id = id}});
  spec.machines.mutable_compute()->set_mean_seconds(0.01);
  spec.machines.mutable_worker_link()->set_megabits_per_second(10);
  spec.machines.mutable_server_link()->set_megabits_per_second(20);
  spec.tests = 10;
  return spec;
}

RunResult ResultOf(const RunSpec& spec, uint32_t threads = 2) {
  const auto result = RunParameterServer(spec, QuadraticTask::Maker(kPlan),
                                         {.threads = threads, .progress = nullptr});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

RunResult FixedResultOf(RunSpec spec, CodecId codec) {
  spec.job.push.adaptive.reset();
  spec.job.push.codec.id = codec;
  return ResultOf(spec);
}

TEST(AdaptiveRunTest, DecisionsFollowTrialsAtEqualDistances) {
  const RunResult result = ResultOf(SpecOf({CodecId::kFp32, CodecId::kFp8E5m2}));
  ASSERT_EQ(result.decision_size(), 2);
  for (int i = 0; i < 2; ++i) {
    const PrecisionDecision& decision = result.decision(i);
    EXPECT_EQ(decision.step(), 40 * i);
    EXPECT_EQ(decision.next_step(), i == 0 ? 40 : kSteps);
    ASSERT_EQ(decision.candidate_size(), 2);
    EXPECT_EQ(decision.candidate(0).name(), "fp32");
    EXPECT_GT(decision.candidate(0).seconds_per_step(),
              1.9 * decision.candidate(1).seconds_per_step());
    EXPECT_EQ(decision.candidate(0).encoding_error(), 0);
    EXPECT_GT(decision.candidate(1).encoding_error(), 0);
  }
  EXPECT_EQ(result.decision(0).chosen(), "fp8_e5m2") << "as exact, and faster";
  EXPECT_GT(result.decision(1).accuracy(), result.decision(0).accuracy());
}

TEST(AdaptiveRunTest, ARunWithOneArmTrainsAsThatCodecAndLosesOnlyReads) {
  for (const CodecId id : {CodecId::kFp8E5m2, CodecId::kInt8}) {
    const RunSpec spec = SpecOf({id});
    const RunResult adaptive = ResultOf(spec);
    const RunResult fixed = FixedResultOf(spec, id);
    // A snapshot has all state, so the parameters are equal bit by bit.
    EXPECT_EQ(adaptive.parameters_crc(), fixed.parameters_crc());
    EXPECT_EQ(adaptive.examples(), fixed.examples());
    EXPECT_EQ(adaptive.updates(), fixed.updates());
    EXPECT_EQ(adaptive.push_bytes() / 100000, fixed.push_bytes() / 100000);
    EXPECT_GT(adaptive.seconds(), fixed.seconds());
    EXPECT_LT(adaptive.seconds(), fixed.seconds() + kReturnSeconds + 2);
    EXPECT_GT(adaptive.point_size(), 5);
  }
}

TEST(AdaptiveRunTest, MomentaAndResidualsContinueFromTheSnapshot) {
  RunSpec spec = SpecOf({CodecId::kOneBit});
  spec.job.optimizer.kind = OptimizerKind::kMomentum;
  spec.job.schedule.learning_rate = 0.005;
  spec.job.publish = PublishOptions{.codec = CodecSpec{.id = CodecId::kFp8E5m2}};
  EXPECT_EQ(ResultOf(spec).parameters_crc(),
            FixedResultOf(spec, CodecId::kOneBit).parameters_crc());
}

TEST(AdaptiveRunTest, DiscardedTrialsTakeTimeAndBytesButChangeNothing) {
  const RunSpec one = SpecOf({CodecId::kFp8E5m2});
  // The second arm is never chosen: it is slower and not better.
  const RunSpec two = SpecOf({CodecId::kFp8E5m2, CodecId::kFp32});
  const RunResult alone = ResultOf(one), beside = ResultOf(two);
  for (const PrecisionDecision& decision : beside.decision()) {
    EXPECT_EQ(decision.chosen(), "fp8_e5m2");
  }
  EXPECT_EQ(beside.parameters_crc(), alone.parameters_crc());
  double trials = 0;
  for (const PrecisionDecision& decision : beside.decision()) {
    trials += 10 * decision.candidate(1).seconds_per_step();
  }
  EXPECT_GT(beside.seconds(), alone.seconds() + trials);
  EXPECT_LT(beside.seconds(), alone.seconds() + trials + 2 * kReturnSeconds);
  EXPECT_GT(beside.push_bytes(), alone.push_bytes() + 2 * 10 * 3 * 12940 * 4);
}

TEST(AdaptiveRunTest, TheNumberOfThreadsChangesNothing) {
  const RunSpec spec = SpecOf({CodecId::kFp32, CodecId::kTable1});
  EXPECT_EQ(ResultOf(spec, 1).ShortDebugString(), ResultOf(spec, 4).ShortDebugString());
}

TEST(AdaptiveRunTest, AnArmWhoseErrorExceedsItsValuesIsRemovedOnRequest) {
  RunSpec spec = SpecOf({CodecId::kFp8E5m2, CodecId::kTable1});
  EXPECT_EQ(ResultOf(spec).decision(1).candidate_size(), 2);
  spec.job.push.adaptive->prune = true;
  const RunResult pruned = ResultOf(spec);
  ASSERT_EQ(pruned.decision_size(), 2);
  ASSERT_EQ(pruned.decision(0).candidate_size(), 2);
  EXPECT_GT(pruned.decision(0).candidate(1).encoding_error(), 1);
  EXPECT_FALSE(pruned.decision(0).candidate(1).has_predicted_accuracy());
  EXPECT_EQ(pruned.decision(1).candidate_size(), 1);
  // The only arm stays.
  spec.job.push.adaptive->arms = {{.codec = {.id = CodecId::kTable1}}};
  EXPECT_EQ(ResultOf(spec).decision(0).chosen(), "table_1");
}

TEST(AdaptiveRunTest, LaterDecisionsCanBeThoseOfOneKindOfTensors) {
  RunSpec spec = SpecOf({CodecId::kFp32, CodecId::kFp8E5m2});
  spec.job.push.adaptive->per_layer = true;
  spec.job.push.adaptive->speculate_steps = 8;
  spec.job.push.adaptive->continue_steps = 8;
  const RunResult result = ResultOf(spec);
  ASSERT_GE(result.decision_size(), 3);
  EXPECT_FALSE(result.decision(0).has_layers());
  EXPECT_EQ(result.decision(0).chosen(), "fp8_e5m2");
  EXPECT_EQ(result.decision(1).layers(), "matrices");
  EXPECT_EQ(result.decision(2).layers(), "convolutions");
  // A trial of fp32 for one kind of tensors is faster than one for all of them.
  const auto slowest = [&](int i) { return result.decision(i).candidate(0).seconds_per_step(); };
  EXPECT_GT(slowest(0), slowest(1));
  EXPECT_GT(slowest(1), slowest(2)) << "there are more values in matrices";
  EXPECT_GT(slowest(2), result.decision(2).candidate(1).seconds_per_step());
}

TEST(AdaptiveRunTest, AShortRunUsesTheFirstArm) {
  RunSpec spec = SpecOf({CodecId::kFp8E5m2, CodecId::kFp32});
  spec.job.push.adaptive->speculate_steps = kSteps;
  const RunResult result = ResultOf(spec);
  EXPECT_EQ(result.decision_size(), 0);
  EXPECT_EQ(result.parameters_crc(), FixedResultOf(spec, CodecId::kFp8E5m2).parameters_crc());
}

TEST(AdaptiveRunTest, FastestIsAnArm) {
  RunSpec spec = SpecOf({CodecId::kFp32});
  spec.job.push.adaptive->arms.push_back({.fastest = true});
  spec.job.push.candidates = {{.id = CodecId::kFp8E5m2}};
  const RunResult result = ResultOf(spec);
  EXPECT_EQ(result.decision(0).chosen(), "fastest");
  spec.job.push.adaptive.reset();
  spec.job.push.choose = ChoiceRule::kFastest;
  EXPECT_EQ(ResultOf(spec).parameters_crc(), result.parameters_crc());
}

TEST(AdaptiveRunTest, TheErrorOfATrialEndsTheRun) {
  QuadraticPlan plan = kPlan;
  plan.fails_at = 5;
  EXPECT_EQ(RunParameterServer(SpecOf({CodecId::kFp32}), QuadraticTask::Maker(plan), {}).status(),
            absl::InternalError("the gradient failed"));
}

TEST(AdaptiveRunTest, ATrialCanBeStopped) {
  const RunControl control = {.threads = 1, .progress = [](double) { return false; }};
  EXPECT_TRUE(absl::IsCancelled(
      RunParameterServer(SpecOf({CodecId::kFp32}), QuadraticTask::Maker(kPlan), control).status()));
}

}  // namespace
}  // namespace thinwire::lab
