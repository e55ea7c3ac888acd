// Tests which older checkpoints stay: those of an interval, and those after the best tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "server/durable/checkpoint.h"
#include "server/job/testing/two_servers.h"

namespace thinwire {
namespace {

class KeptCheckpointsTest : public TwoServersTest {};

// No restart removes a kept checkpoint, and a running job can go back to it.
TEST_F(KeptCheckpointsTest, TheCheckpointOfAnIntervalStaysAtAllServers) {
  retention_ = {.newest_count = 1, .every = 8};
  StartServers();
  Begin();
  std::vector<uint64_t> steps;
  for (int i = 0; i < 5; ++i) steps.push_back(TrainToCheckpoint());
  const std::vector<Step> kept = StepsOf(0);
  EXPECT_EQ(kept, StepsOf(1));
  EXPECT_LT(kept.size(), steps.size());
  const auto first = std::ranges::find_if(steps, [](uint64_t step) { return step >= 8; });
  ASSERT_EQ(kept.front(), Step{*first});
  EXPECT_EQ(kept.back(), Step{steps.back()});
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  Resume(steps.back());
  TrainToCheckpoint();
  for (uint32_t s = 0; s < kServers; ++s) {
    EXPECT_TRUE(HasStep(s, *first)) << "server " << s;
  }
  ASSERT_TRUE(Restore(*first).ok());
  AwaitGeneration(3);
  EXPECT_EQ(Masters(), masters_[*first]);
}

// The checkpoint after the best test survives later ones, a restart of the lead included.
TEST_F(KeptCheckpointsTest, TheBestTestedCheckpointStaysAtAllServers) {
  retention_ = {.newest_count = 1, .best_count = 1};
  StartServers();
  Begin();
  RunTicks(100);  // both servers answer the lead once
  Train(3);
  const uint64_t best = TrainToTested(0.5);
  const std::map<uint64_t, double> only_best = {{best, 0.5}};
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(TestedOf(s), only_best) << s;
  ReportTest(3, 0.5);  // a heartbeat repeats the test
  ReportTest(step_, 0.4);
  EXPECT_EQ(AnnouncedStep(), best) << "not among the best";
  for (int i = 0; i < 3; ++i) TrainToCheckpoint();
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  AwaitGeneration(2);
  Resume(StepsOf(0).back().value);
  ReportTest(step_, 0.45);
  EXPECT_EQ(AnnouncedStep(), std::nullopt) << "the lead knows the accuracy of the best";
  for (int i = 0; i < 3; ++i) TrainToCheckpoint();
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(TestedOf(s), only_best) << s;

  const uint64_t better = TrainToTested(0.6);
  for (int i = 0; i < 2; ++i) TrainToCheckpoint();
  for (uint32_t s = 0; s < kServers; ++s) {
    EXPECT_EQ(TestedOf(s), (std::map<uint64_t, double>{{better, 0.6}})) << s;
    EXPECT_FALSE(HasStep(s, best)) << s;
  }
  ASSERT_TRUE(Restore(better).ok());
  AwaitGeneration(3);
  EXPECT_EQ(Masters(), masters_[better]);
}

TEST_F(KeptCheckpointsTest, AFullDiskRemovesNoTestedCheckpoint) {
  retention_ = {.newest_count = 1, .best_count = 1};
  StartServers();
  Begin();
  RunTicks(100);  // both servers answer the lead once
  Train(3);
  const uint64_t best = TrainToTested(0.5);
  for (uint32_t failing = 0; failing < kServers; ++failing) {
    const uint64_t failed_before = Status(failing).failed_checkpoints();
    servers_[failing]->files.SetFreeBytes(10);
    ReportTest(step_, 0.6 + 0.1 * failing);
    const uint64_t step = *AnnouncedStep();
    Train(step);
    TickUntil([&] {
      return HasStep(1 - failing, step) && Status(failing).failed_checkpoints() > failed_before;
    });
    servers_[failing]->files.SetFreeBytes(uint64_t{1} << 40);
    for (int i = 0; i < 3; ++i) TrainToCheckpoint();
    for (uint32_t s = 0; s < kServers; ++s) EXPECT_TRUE(HasStep(s, best)) << s;
  }
  ASSERT_TRUE(Restore(best).ok());
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[best]);
}

TEST_F(KeptCheckpointsTest, AReturnBelowATestedCheckpointForgetsIt) {
  retention_ = {.newest_count = 3, .best_count = 1};
  StartServers();
  Begin();
  const uint64_t first = TrainToCheckpoint();
  TrainToTested(0.5);
  ASSERT_TRUE(Restore(first).ok());
  AwaitGeneration(2);
  Resume(first);
  RunTicks(100);
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_TRUE(TestedOf(s).empty()) << s;
  const uint64_t best = TrainToTested(0.4);
  for (int i = 0; i < 4; ++i) TrainToCheckpoint();
  for (uint32_t s = 0; s < kServers; ++s) {
    EXPECT_EQ(TestedOf(s), (std::map<uint64_t, double>{{best, 0.4}})) << s;
  }
}

// The last test of a run: no worker reaches the announced step.
TEST_F(KeptCheckpointsTest, TheLastTestBelongsToTheLastCheckpoint) {
  retention_ = {.newest_count = 1, .best_count = 1};
  for (const bool leaves_first : {false, true}) {
    for (uint32_t s = 0; s < kServers; ++s) RestartWithoutState(s);
    w0_ = Worker{.number = 0};
    step_ = 0;
    Begin();
    RunTicks(100);  // both servers answer the lead once
    Train(3);
    const Worker evaluator = {.number = 0, .incarnation = w0_.incarnation};
    if (leaves_first) Leave(w0_);
    w0_.incarnation = evaluator.incarnation;
    ReportTest(3, 0.5);
    if (!leaves_first) Leave(w0_);
    for (uint32_t s = 0; s < kServers; ++s) Stop(s);
    RunDueTasks();
    for (uint32_t s = 0; s < kServers; ++s) {
      EXPECT_EQ(TestedOf(s), (std::map<uint64_t, double>{{3, 0.5}})) << s;
    }
  }
}

TEST_F(KeptCheckpointsTest, InAsyncAndWithALogTheBestTestedCheckpointIsMadeAtOnceAndStays) {
  for (const auto& [rule, durability] : {std::pair(Rule::Async(1), Durability::kCheckpoint),
                                         {Rule::Ssp(1, 2), Durability::kCheckpoint},
                                         {Rule::Async(1), Durability::kLog},
                                         {Rule::Sync(1), Durability::kLog}}) {
    rule_ = rule;
    durability_ = durability;
    retention_ = {.newest_count = 1, .best_count = 1};
    for (uint32_t s = 0; s < kServers; ++s) RestartWithoutState(s);
    w0_ = Worker{.number = 0};
    step_ = 0;
    JoinAll(w0_);
    SendReads(w0_, 0, /*seed=*/true);
    AwaitParameters(w0_, 0);
    Train(3);
    ReportTest(3, 0.5);
    RunDueTasks();
    const std::map<uint64_t, double> best = {{3, 0.5}};
    for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(TestedOf(s), best) << s << " " << rule;
    for (int i = 0; i < 3; ++i) {
      Train(step_ + 2);
      ExpectSteps(Save(), step_);
    }
    for (uint32_t s = 0; s < kServers; ++s) {
      EXPECT_EQ(TestedOf(s), best) << s << " " << rule;
      EXPECT_EQ(ListCheckpoints(servers_[s]->files, kFolder)->size(), 2u) << s << " " << rule;
    }
    // A restarted lead knows the accuracy.
    Kill(0);
    ASSERT_TRUE(StartServer(0).ok());
    ASSERT_TRUE(Join(0, w0_).ok());
    ReportTest(step_, 0.4);
    RunDueTasks();
    EXPECT_EQ(TestedOf(0), best) << rule;
    ReportTest(step_ + 1, 0.6);
    RunDueTasks();
    EXPECT_EQ(TestedOf(0).rbegin()->second, 0.6) << rule;
  }
}

}  // namespace
}  // namespace thinwire
