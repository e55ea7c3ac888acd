#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/testing/quadratic_task.h"

namespace thinwire::lab {
namespace {

using Histogram = std::map<uint64_t, uint64_t>;

constexpr uint64_t kShardCount = 5;  // of the quadratic task with the shard size below

RunSpec SpecOf(const Rule& rule) {
  RunSpec spec;
  spec.job.rule = rule;
  spec.job.server_count = 2;
  spec.job.shard_size = 4096;
  spec.job.schedule.learning_rate = 0.1;
  spec.machines.mutable_compute()->set_mean_seconds(1);
  spec.tests = 4;
  return spec;
}

// Sets delays, bandwidths, costs and compute times that make the order of the messages irregular.
void MakeIrregular(RunSpec& spec) {
  Machines& machines = spec.machines;
  machines.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
  machines.mutable_worker_link()->set_megabits_per_second(1);
  machines.mutable_worker_link()->set_latency_ms(20);
  machines.mutable_server_link()->set_megabits_per_second(2);
  CodecCost& cost = *machines.add_codec_cost();
  cost.set_codec(Compression::Codec::fp32);
  cost.set_encode_ns_per_value(1000);
  cost.set_decode_ns_per_value(2000);
}

RunResult ResultOf(const RunSpec& spec, const QuadraticPlan& plan, uint32_t threads = 2) {
  const auto result = RunParameterServer(spec, QuadraticTask::Maker(plan),
                                         {.threads = threads, .progress = nullptr});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

Histogram StalenessOf(const RunResult& result) {
  return {result.staleness().begin(), result.staleness().end()};
}

TEST(ParameterServerRunTest, TheNumberOfThreadsChangesNothing) {
  int checked = 0;
  for (const Rule& rule : {Rule::Sync(6), Rule::Backup(6, 2), Rule::Ssp(6, 2), Rule::Async(6, 2)}) {
    RunSpec spec = SpecOf(rule);
    MakeIrregular(spec);
    spec.job.push.codec = {.id = CodecId::kTopK, .density = 0.05};
    const QuadraticPlan plan = {.workers = 6, .steps = 12, .uneven = true};
    const RunResult one = ResultOf(spec, plan, 1);
    const RunResult four = ResultOf(spec, plan, 4);
    EXPECT_EQ(one.ShortDebugString(), four.ShortDebugString()) << rule;
    EXPECT_GT(one.value_age_size(), 1);
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

TEST(ParameterServerRunTest, TheSentValuesAreThoseOfTheLastStep) {
  RunSpec spec = SpecOf(Rule::Sync(2));
  const QuadraticPlan plan = {.workers = 2, .steps = 8};
  EXPECT_EQ(ResultOf(spec, plan).sent_values(), 12940u);
  spec.job.push.codec = {.id = CodecId::kTopK, .density = 0.05};
  spec.job.push.warmup.density = {.part = 0.5, .first = 0.5};
  // All 140 values of vectors, and 5 % of those of the matrices.
  EXPECT_EQ(ResultOf(spec, plan).sent_values(), 140 + 12800 / 20);
}

TEST(ParameterServerRunTest, TimeIsComputingDecodingEncodingAndSending) {
  RunSpec spec = SpecOf(Rule::Sync(1));
  spec.job.server_count = 1;
  const QuadraticPlan plan = {.workers = 1, .steps = 10};
  EXPECT_DOUBLE_EQ(ResultOf(spec, plan).seconds(), 10);

  // The worker and the server encode and decode 12,940 values in each step, except that the first
  // parameters are free. All shards are in one message, so that no process works while the other does.
  CodecCost& cost = *spec.machines.add_codec_cost();
  cost.set_codec(Compression::Codec::fp32);
  cost.set_encode_ns_per_value(1000);
  cost.set_decode_ns_per_value(2000);
  const double encode = 12940 * 1e-6, decode = 12940 * 2e-6;
  const double worked = ResultOf(spec, plan).seconds() - 10;
  EXPECT_GT(worked, 19 * (encode + decode));
  EXPECT_LT(worked, 20 * (encode + decode));

  spec.machines.clear_codec_cost();
  spec.machines.mutable_worker_link()->set_megabits_per_second(8);
  spec.machines.mutable_worker_link()->set_latency_ms(1);
  const RunResult sent = ResultOf(spec, plan);
  const double push = static_cast<double>(sent.push_bytes()) * 8 / 8e6;
  const double pull = static_cast<double>(sent.pull_bytes()) * 8 / 8e6;
  EXPECT_GT(sent.seconds(), 10 + push + 0.02);
  EXPECT_LT(sent.seconds(), 10 + push + pull + 0.04);
  EXPECT_DOUBLE_EQ(sent.busy(), 10 / sent.seconds());
  EXPECT_GT(sent.push_bytes(), 10 * 12940 * 4);
}

TEST(ParameterServerRunTest, ARoundOfBackupClosesWithTheFirstPushes) {
  RunSpec spec = SpecOf(Rule::Backup(4, 1));
  spec.machines.mutable_compute()->set_slow_workers(1);
  spec.machines.mutable_compute()->set_slow_factor(2.4);
  const RunResult result = ResultOf(spec, {.workers = 4, .steps = 10});
  // The slow worker pushes at 2.4 and jumps to step 2, pushes at 4.8 and jumps to step 4, and so
  // on: to steps 7 and 9. All its pushes are late.
  EXPECT_EQ(result.late_pushes(), 5 * kShardCount);
  EXPECT_DOUBLE_EQ(result.seconds(), 12);
  EXPECT_EQ(result.updates(), 10);
  EXPECT_DOUBLE_EQ(result.median_step_seconds(), 1);
  EXPECT_EQ(StalenessOf(result), (Histogram{{0, 30}}));
}

TEST(ParameterServerRunTest, TestsUseTheAveragesAndTrainingDoesNot) {
  int checked = 0;
  for (const Rule& rule : {Rule::Sync(3), Rule::Backup(3, 1), Rule::Ssp(3, 2), Rule::Async(3)}) {
    for (const uint32_t local_steps : {1, 2}) {
      RunSpec spec = SpecOf(rule);
      spec.job.schedule.learning_rate = 0.5;
      spec.job.task.local = {.count = local_steps, .learning_rate = 0.5};
      const QuadraticPlan plan = {.workers = 3, .steps = 40, .local_steps = local_steps};
      const RunResult masters = ResultOf(spec, plan);
      spec.job.optimizer.parameter_average = 0.9;
      const RunResult averages = ResultOf(spec, plan);
      EXPECT_EQ(averages.parameters_crc(), masters.parameters_crc()) << rule;
      EXPECT_EQ(averages.pull_bytes(), masters.pull_bytes()) << rule;
      // The gradients are noisy, and the average has less noise.
      EXPECT_LT(averages.point().rbegin()->test_loss(), 0.5 * masters.point().rbegin()->test_loss())
          << rule;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 8);
}

TEST(ParameterServerRunTest, RoundsMeasureTheNoiseScale) {
  RunSpec spec = SpecOf(Rule::Sync(4));
  spec.job.schedule.learning_rate = 1e-9;
  const QuadraticPlan plan = {.workers = 4, .steps = 80};
  const RunResult sync = ResultOf(spec, plan);
  // In each of the n values, a push has the variance 1/3, so an example has 8/3. The squared
  // gradient is 2 n loss.
  for (const RunResult::Point& point : sync.point()) {
    EXPECT_NEAR(point.noise_scale(), 8.0 / 3 / (2 * point.test_loss()), 0.05 * point.noise_scale());
  }
  spec.job.rule = Rule::Async(4);
  EXPECT_FALSE(ResultOf(spec, plan).point(0).has_noise_scale());
}

TEST(ParameterServerRunTest, SspLimitsTheStaleness) {
  const QuadraticPlan plan = {.workers = 2, .steps = 20};
  const auto largest = [&](const Rule& rule) {
    RunSpec spec = SpecOf(rule);
    spec.machines.mutable_compute()->set_slow_workers(1);
    spec.machines.mutable_compute()->set_slow_factor(9.6);
    return StalenessOf(ResultOf(spec, plan)).rbegin()->first;
  };
  // While the slow worker computes a step, the other one finishes at most two.
  EXPECT_EQ(largest(Rule::Ssp(2, 1)), 2);
  EXPECT_EQ(largest(Rule::Ssp(2, 4)), 5);
  EXPECT_EQ(largest(Rule::Async(2)), 10);
}

// All workers push at the same time, one after another. Each push is answered with its own update,
// so the next push of the worker follows those of the three others.
TEST(ParameterServerRunTest, AsyncWithConstantTimesHasTheStalenessOfTheOtherWorkers) {
  const RunResult result = ResultOf(SpecOf(Rule::Async(4)), {.workers = 4, .steps = 10});
  EXPECT_EQ(StalenessOf(result), (Histogram{{0, 1}, {1, 1}, {2, 1}, {3, 37}}));
  EXPECT_EQ(result.updates(), 40);
}

TEST(ParameterServerRunTest, PoliciesAgainstStalenessAreThoseOfTheShards) {
  RunSpec spec = SpecOf(Rule::Async(4));
  spec.job.staleness = {.policy = StalenessPolicy::kDrop, .bound = 2};
  const RunResult dropped = ResultOf(spec, {.workers = 4, .steps = 10});
  EXPECT_EQ(StalenessOf(dropped).rbegin()->first, 2);
  EXPECT_GT(dropped.dropped_pushes(), 0);
  EXPECT_EQ(dropped.updates() * kShardCount + dropped.dropped_pushes(), 40 * kShardCount)
      << "all shards drop pushes of the same steps";
}

TEST(ParameterServerRunTest, PointsAreAtEqualDistancesOfExamples) {
  RunSpec spec = SpecOf(Rule::Sync(3));
  const RunResult result = ResultOf(spec, {.workers = 3, .steps = 20});
  ASSERT_EQ(result.point_size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(result.point(i).examples(), (i + 1) * 3 * 5 * QuadraticTask::kExamples);
    EXPECT_DOUBLE_EQ(result.point(i).seconds(), (i + 1) * 5);
    EXPECT_EQ(result.point(i).updates(), (i + 1) * 5);
    EXPECT_LT(result.point(i).test_loss(), i == 0 ? 13 : result.point(i - 1).test_loss());
  }
  EXPECT_GT(result.point(0).train_loss(), result.point(0).test_loss());
  EXPECT_EQ(result.steps(), 20);
}

TEST(ParameterServerRunTest, AStragglerOfTheJobDelaysItsSteps) {
  RunSpec spec = SpecOf(Rule::Sync(3));
  spec.job.stragglers = {{WorkerId{1}, absl::Milliseconds(500)}};
  EXPECT_DOUBLE_EQ(ResultOf(spec, {.workers = 3, .steps = 4}).seconds(), 6);
}

// Returns a job whose servers add the mean difference of local steps to the parameters.
RunSpec LocalSpecOf(const Rule& rule, uint32_t local_steps) {
  RunSpec spec = SpecOf(rule);
  spec.job.schedule.learning_rate = 1;
  spec.job.task.local = {.count = local_steps, .learning_rate = 0.1};
  return spec;
}

TEST(ParameterServerRunTest, LocalStepsTakeTheTimeOfTheirGradientsAndTheBytesOfOne) {
  const RunResult one = ResultOf(SpecOf(Rule::Sync(3)), {.workers = 3, .steps = 5});
  const RunResult four = ResultOf(LocalSpecOf(Rule::Sync(3), 4),
                                  {.workers = 3, .steps = 5, .local_steps = 4, .uneven = true});
  EXPECT_DOUBLE_EQ(one.seconds(), 5);
  // The last worker has three local steps in the last step, and the others wait for nobody.
  EXPECT_DOUBLE_EQ(four.seconds(), 20);
  EXPECT_EQ(four.push_bytes(), one.push_bytes());
  EXPECT_EQ(four.examples(), QuadraticTask::kExamples * (3 * 5 * 4 - 1));
}

TEST(ParameterServerRunTest, LocalStepsLearnInEveryMode) {
  int checked = 0;
  for (const Rule& rule : {Rule::Sync(4), Rule::Backup(4, 1), Rule::Ssp(4, 2), Rule::Async(4)}) {
    RunSpec spec = LocalSpecOf(rule, 5);
    MakeIrregular(spec);
    spec.job.push.codec = {.id = CodecId::kFp8E5m2};
    // Without rounds, every push is an update of its own.
    if (rule.fold == Fold::kPush) spec.job.schedule.learning_rate = 0.25;
    const RunResult result = ResultOf(spec, {.workers = 4, .steps = 12, .local_steps = 5});
    ASSERT_GT(result.point_size(), 1) << rule;
    const double last = result.point(result.point_size() - 1).test_loss();
    EXPECT_LT(last, result.point(0).test_loss() / 2) << rule;
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

TEST(ParameterServerRunTest, AServerBesideAWorkerSendsItNothing) {
  RunSpec spec = SpecOf(Rule::Sync(1));
  spec.job.server_count = 1;
  spec.machines.set_servers_beside_workers(true);
  spec.machines.mutable_worker_link()->set_megabits_per_second(0.001);
  EXPECT_DOUBLE_EQ(ResultOf(spec, {.workers = 1, .steps = 4}).seconds(), 4);
}

TEST(ParameterServerRunTest, AStepWaitsForTheFarthestSite) {
  RunSpec spec = SpecOf(Rule::Sync(2));
  const auto add_site = [&](const char* name, uint32_t servers) {
    Site& site = *spec.machines.add_site();
    site.set_name(name);
    site.set_workers(1);
    site.set_servers(servers);
  };
  add_site("near", 2);
  add_site("far", 0);
  Distance& distance = *spec.machines.add_distance();
  distance.set_from("far");
  distance.set_to("near");
  distance.set_round_trip_ms(200);
  const QuadraticPlan plan = {.workers = 2, .steps = 10};
  EXPECT_NEAR(ResultOf(spec, plan).median_step_seconds(), 1.2, 1e-6);
  // The worker beside the servers does not wait.
  spec.job.rule = Rule::Async(2);
  spec.machines.mutable_site(0)->set_workers(2);
  spec.machines.mutable_site(1)->set_workers(0);
  EXPECT_NEAR(ResultOf(spec, plan).median_step_seconds(), 1, 1e-6);
}

TEST(ParameterServerRunTest, ClippingTakesTwoMessagesBetweenServers) {
  RunSpec spec = SpecOf(Rule::Sync(3, /*ordered_fold=*/true));
  spec.machines.mutable_server_link()->set_latency_ms(100);
  const QuadraticPlan plan = {.workers = 3, .steps = 10};
  const RunResult plain = ResultOf(spec, plan);
  spec.job.clip_norm = 1e30;
  const RunResult waiting = ResultOf(spec, plan);
  EXPECT_EQ(waiting.parameters_crc(), plain.parameters_crc());
  // A message passes the links of both servers.
  EXPECT_NEAR(waiting.median_step_seconds() - plain.median_step_seconds(), 0.4, 1e-6);
  spec.job.clip_norm = 1;
  EXPECT_NE(ResultOf(spec, plan).parameters_crc(), plain.parameters_crc());
}

TEST(ParameterServerRunTest, SettingsThatVirtualTimeLacksAreRefused) {
  const auto message = [](const std::function<void(RunSpec&)>& change) {
    RunSpec spec = SpecOf(Rule::Sync(2));
    change(spec);
    return std::string(
        RunParameterServer(spec, QuadraticTask::Maker({.workers = 2}), {}).status().message());
  };
  EXPECT_EQ(message([](RunSpec& spec) { spec.job.task.device = "cuda:0"; }),
            "job.task.device: out of range (expected auto or cpu in virtual time, got cuda:0)");
  EXPECT_EQ(message([](RunSpec& spec) { spec.machines.set_imposed_staleness(3); }),
            "machines.imposed_staleness: out of range (expected mode async, got sync)");
  EXPECT_EQ(message([](RunSpec& spec) {
              spec.machines.set_servers_beside_workers(true);
              spec.job.server_count = 3;
            }),
            "machines.servers_beside_workers: out of range (expected at most as many servers as "
            "workers, got 3 servers, 2 workers)");
  EXPECT_EQ(message([](RunSpec& spec) {
              spec.job.push.choose = ChoiceRule::kAuto;
              spec.job.push.candidates = {{.id = CodecId::kBf16}};
            }),
            "job.compression.push: out of range (expected a codec, fastest or adaptive in "
            "virtual time, got auto)");
}

TEST(ParameterServerRunTest, ARunEndsWithTheErrorOfAGradient) {
  EXPECT_EQ(RunParameterServer(SpecOf(Rule::Sync(2)),
                               QuadraticTask::Maker({.workers = 2, .steps = 5, .fails_at = 2}), {})
                .status(),
            absl::InternalError("the gradient failed"));
}

TEST(ParameterServerRunTest, ARunCanBeStopped) {
  const RunControl control = {.threads = 1, .progress = [](double) { return false; }};
  EXPECT_TRUE(absl::IsCancelled(
      RunParameterServer(SpecOf(Rule::Sync(2)), QuadraticTask::Maker({.workers = 2, .steps = 50}),
                         control)
          .status()));
}

// Returns the result of a job whose rule changes at run time. One of four workers is slow.
RunResult AutoResult(const Rule& rule, double slow_factor) {
  RunSpec spec = SpecOf(rule);
  spec.job.auto_rule = true;
  spec.machines.mutable_compute()->set_slow_workers(1);
  spec.machines.mutable_compute()->set_slow_factor(slow_factor);
  return ResultOf(spec, {.workers = 4, .steps = 60});
}

TEST(ParameterServerRunTest, ASlowWorkerBecomesTheBackupWorker) {
  const RunResult result = AutoResult(Rule::Backup(4, 0), 5);
  ASSERT_EQ(result.rule_change_size(), 1) << result.ShortDebugString();
  EXPECT_EQ(result.rule_change(0).backup(), 1u);
  // Eight steps of 5 s are measured. The new rule begins about eight steps later, and the steps
  // after it take 1 s.
  EXPECT_NEAR(result.rule_change(0).seconds(), 8 * 5, 6);
  EXPECT_NEAR(result.rule_change(0).step(), 16, 1);
  EXPECT_GT(result.late_pushes(), 0u);
  EXPECT_LT(result.seconds(), 17 * 5 + 43 + 10);
}

TEST(ParameterServerRunTest, EquallyFastWorkersNeedNoBackupWorker) {
  const RunResult none = AutoResult(Rule::Backup(4, 0), 1);
  EXPECT_EQ(none.rule_change_size(), 0) << none.ShortDebugString();
  const RunResult one = AutoResult(Rule::Backup(4, 1), 1);
  ASSERT_EQ(one.rule_change_size(), 1) << one.ShortDebugString();
  EXPECT_TRUE(one.rule_change(0).has_backup());
  EXPECT_EQ(one.rule_change(0).backup(), 0u);
}

TEST(ParameterServerRunTest, SlackThatSavesNoWaitingIsTakenBack) {
  const RunResult result = AutoResult(Rule::Ssp(4, 8), 5);
  ASSERT_EQ(result.rule_change_size(), 1) << result.ShortDebugString();
  EXPECT_TRUE(result.rule_change(0).has_slack());
  EXPECT_EQ(result.rule_change(0).slack(), 0u);
}

}  // namespace
}  // namespace thinwire::lab
