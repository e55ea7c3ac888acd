#include "experiments/replay/imposed_staleness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/testing/quadratic_task.h"

namespace thinwire::lab {
namespace {

using Histogram = std::map<uint64_t, uint64_t>;

// Four workers, whose steps take a second.
RunSpec SpecOf(uint64_t staleness) {
  RunSpec spec;
  spec.job.rule = Rule::Async(4);
  spec.job.server_count = 2;
  spec.job.shard_size = 4096;
  spec.job.schedule.learning_rate = 0.1;
  spec.machines.mutable_compute()->set_mean_seconds(1);
  spec.machines.set_imposed_staleness(staleness);
  spec.tests = 4;
  return spec;
}

RunResult ResultOf(const RunSpec& spec, const QuadraticPlan& plan, uint32_t threads = 2) {
  const auto result = RunImposedStaleness(spec, QuadraticTask::Maker(plan),
                                          {.threads = threads, .progress = nullptr});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

Histogram StalenessOf(const RunResult& result) {
  return {result.staleness().begin(), result.staleness().end()};
}

TEST(ImposedStalenessTest, ItIsExact) {
  int checked = 0;
  for (const uint64_t staleness : {0, 2, 3, 9}) {
    // Whole parameters, exact deltas, which are whole parameters here too, and encoded deltas.
    for (const auto& publish : std::vector<std::optional<PublishOptions>>{
             std::nullopt, PublishOptions(), PublishOptions{.codec = CodecSpec{}}}) {
      RunSpec spec = SpecOf(staleness);
      spec.machines.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
      spec.job.publish = publish;
      const RunResult result = ResultOf(spec, {.workers = 4, .steps = 10});
      Histogram expected;
      for (uint64_t turn = 0; turn < 40; ++turn) ++expected[std::min(turn, staleness)];
      EXPECT_EQ(StalenessOf(result), expected) << staleness;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 12);
}

TEST(ImposedStalenessTest, DeltasLeadToTheSameParameters) {
  RunSpec spec = SpecOf(6);
  const QuadraticPlan plan = {.workers = 4, .steps = 10};
  const RunResult whole = ResultOf(spec, plan);
  spec.job.publish = PublishOptions();
  EXPECT_EQ(ResultOf(spec, plan).parameters_crc(), whole.parameters_crc());
  spec.job.push.codec = {.id = CodecId::kTopK, .density = 0.01};
  spec.job.sparse_updates.lazy_slots = true;
  const RunResult deltas = ResultOf(spec, plan);
  spec.job.publish = std::nullopt;
  EXPECT_EQ(ResultOf(spec, plan).parameters_crc(), deltas.parameters_crc());
  EXPECT_LT(deltas.pull_bytes(), whole.pull_bytes() / 2);
}

TEST(ImposedStalenessTest, PoliciesAgainstStalenessAreThoseOfTheShards) {
  RunSpec spec = SpecOf(8);
  spec.job.staleness = {.policy = StalenessPolicy::kScale};
  const RunResult scaled = ResultOf(spec, {.workers = 4, .steps = 10});
  spec.job.staleness = {};
  const RunResult plain = ResultOf(spec, {.workers = 4, .steps = 10});
  EXPECT_EQ(StalenessOf(scaled), StalenessOf(plain));
  EXPECT_GT(scaled.point(3).test_loss(), plain.point(3).test_loss()) << "smaller steps";

  spec.job.publish = PublishOptions{.codec = CodecSpec{}};
  const RunResult published = ResultOf(spec, {.workers = 4, .steps = 10});
  spec.job.staleness = {.policy = StalenessPolicy::kDcasgd};
  const RunResult compensated = ResultOf(spec, {.workers = 4, .steps = 10});
  EXPECT_EQ(StalenessOf(compensated), StalenessOf(published));
  EXPECT_NE(compensated.parameters_crc(), published.parameters_crc());
}

TEST(ImposedStalenessTest, WithoutStalenessWorkersInTurnTrainAsOne) {
  const RunResult four = ResultOf(SpecOf(0), {.workers = 4, .steps = 10});
  EXPECT_DOUBLE_EQ(four.seconds(), 40);
  const RunResult stale = ResultOf(SpecOf(30), {.workers = 4, .steps = 10});
  EXPECT_DOUBLE_EQ(stale.seconds(), 10) << "all workers compute at the same time";
  EXPECT_LT(four.point(3).test_loss(), stale.point(3).test_loss());
}

TEST(ImposedStalenessTest, TheNumberOfThreadsChangesNothing) {
  RunSpec spec = SpecOf(9);
  spec.job.push.codec = {.id = CodecId::kTopK, .density = 0.05};
  const QuadraticPlan plan = {.workers = 4, .steps = 10, .uneven = true};
  EXPECT_EQ(ResultOf(spec, plan, 1).ShortDebugString(), ResultOf(spec, plan, 4).ShortDebugString());
}

TEST(ImposedStalenessTest, ARunEndsWithTheErrorOfAGradient) {
  EXPECT_EQ(RunImposedStaleness(SpecOf(3),
                                QuadraticTask::Maker({.workers = 4, .steps = 5, .fails_at = 2}), {})
                .status(),
            absl::InternalError("the gradient failed"));
}

}  // namespace
}  // namespace thinwire::lab
