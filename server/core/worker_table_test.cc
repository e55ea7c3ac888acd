#include "server/core/worker_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace thinwire {
namespace {

constexpr WorkerId kA{0};
constexpr WorkerId kB{1};
constexpr Incarnation kFirst{1};
constexpr Incarnation kSecond{2};

// Returns a table in which workers A and B are live, each with a waiting read for step 0.
WorkerTable TwoLive() {
  WorkerTable table(2);
  for (const WorkerId w : {kA, kB}) {
    table.Join(w, kFirst);
    table.Read(w, {.step = Step{0}});
  }
  return table;
}

TEST(WorkerTableTest, AWorkerIsLiveOnlyAfterItsFirstRead) {
  WorkerTable table(2);
  table.Join(kA, kFirst);
  EXPECT_EQ(table.live_count(), 0u);
  EXPECT_EQ(table.SmallestLiveNext(), std::nullopt);
  table.Read(kA, {.step = Step{3}});
  EXPECT_EQ(table.live_count(), 1u);
  EXPECT_EQ(table.SmallestLiveNext(), Step{3});
}

TEST(WorkerTableTest, ReadFinishesEveryStepBelowIt) {
  WorkerTable table = TwoLive();
  table.Read(kA, {.step = Step{5}});
  EXPECT_EQ(table.of(kA).next, Step{5});
  EXPECT_EQ(table.LargestNext(), Step{5});
  EXPECT_EQ(table.SmallestLiveNext(), Step{0});
}

TEST(WorkerTableTest, OvertakenReadChangesNothing) {
  WorkerTable table = TwoLive();
  table.Read(kA, {.step = Step{5}});
  const WorkerRecord before = table.of(kA);
  table.Read(kA, {.step = Step{4}});
  EXPECT_EQ(table.of(kA), before);
}

TEST(WorkerTableTest, SameReadIsAnsweredAgain) {
  WorkerTable table = TwoLive();
  EXPECT_EQ(table.ReleaseReads(Step{0}, 0, Step{0}).size(), 2u);
  EXPECT_TRUE(table.ReleaseReads(Step{0}, 0, Step{0}).empty());
  table.Read(kA, {.step = Step{0}, .form = CodecId::kBf16});
  const std::vector<ReadAnswer> want = {{kA, kFirst, Step{0}, CodecId::kBf16, Step{0}}};
  EXPECT_EQ(table.ReleaseReads(Step{0}, 0, Step{0}), want);
}

TEST(WorkerTableTest, ReadsForLaterStepsStay) {
  WorkerTable table = TwoLive();
  table.Read(kB, {.step = Step{2}});
  EXPECT_EQ(table.ReleaseReads(Step{1}, 0, Step{1}).size(), 1u);
  EXPECT_EQ(table.Waiting(), std::vector<WorkerId>{kB});
}

TEST(WorkerTableTest, FinishingAStepNeverLowersNext) {
  WorkerTable table = TwoLive();
  table.Read(kA, {.step = Step{9}});
  table.Finish(kA, Step{3}, Verdict::kLate);
  EXPECT_EQ(table.of(kA).next, Step{9});
  table.Finish(kA, Step{9}, Verdict::kAccept);
  EXPECT_EQ(table.of(kA).next, Step{10});
}

TEST(WorkerTableTest, StepsSaturateAtTheLargest) {
  const Step last{std::numeric_limits<uint64_t>::max()};
  EXPECT_EQ(StepsAfter(last, 1), last);
  EXPECT_EQ(StepsAfter(Step{7}, std::numeric_limits<uint64_t>::max()), last);
  EXPECT_EQ(StepsAfter(Step{7}, 2), Step{9});
  WorkerTable table = TwoLive();
  table.Finish(kA, last, Verdict::kAccept);
  EXPECT_EQ(table.of(kA).next, last);
}

TEST(WorkerTableTest, ExpiryKeepsTheWaitingReadAndLeavingDropsIt) {
  WorkerTable table = TwoLive();
  table.Expire(kA);
  table.Leave(kB);
  EXPECT_EQ(table.live_count(), 0u);
  EXPECT_EQ(table.Waiting(), std::vector<WorkerId>{kA});
}

TEST(WorkerTableTest, AMessageMakesAnExpiredWorkerLive) {
  WorkerTable table = TwoLive();
  table.Expire(kA);
  EXPECT_EQ(table.UnfinishedWorkers(), std::vector<WorkerId>{kB});
  table.MarkHeard(kA);
  EXPECT_EQ(table.live_count(), 2u);
}

TEST(WorkerTableTest, ASuccessorKeepsOnlyNext) {
  WorkerTable table = TwoLive();
  table.Finish(kA, Step{4}, Verdict::kAccept);
  table.Join(kA, kSecond);
  EXPECT_EQ(table.of(kA).next, Step{5});
  EXPECT_FALSE(table.of(kA).live());
  EXPECT_FALSE(table.of(kA).waiting.has_value());
  EXPECT_FALSE(table.of(kA).last_push.has_value());
  EXPECT_FALSE(table.IsCurrent(kA, kFirst));
  EXPECT_TRUE(table.IsCurrent(kA, kSecond));
}

TEST(WorkerTableTest, AnOlderOrEqualIncarnationChangesNothing) {
  WorkerTable table = TwoLive();
  const WorkerRecord before = table.of(kA);
  table.Join(kA, kFirst);
  table.Join(kA, Incarnation{0});
  EXPECT_EQ(table.of(kA), before);
}

TEST(WorkerTableTest, SuccessorMayReadBelowItsPredecessor) {
  WorkerTable table = TwoLive();
  table.Read(kA, {.step = Step{9}});
  table.Join(kA, kSecond);
  table.Read(kA, {.step = Step{2}});
  EXPECT_EQ(table.of(kA).next, Step{9});
  EXPECT_EQ(table.ReleaseReads(Step{2}, 0, Step{2}).size(), 2u);
}

TEST(WorkerTableTest, TheVerdictsOfEarlierStepsStay) {
  WorkerTable table = TwoLive();
  table.Finish(kA, Step{0}, Verdict::kAccept);
  table.Finish(kA, Step{1}, Verdict::kLate);
  table.Finish(kA, Step{4}, Verdict::kRefused);
  table.Finish(kA, Step{5}, Verdict::kAccept);
  const JudgedPush& pushes = *table.of(kA).last_push;
  EXPECT_EQ(pushes.VerdictOf(Step{0}), Verdict::kAccept);
  EXPECT_EQ(pushes.VerdictOf(Step{1}), Verdict::kLate);
  EXPECT_EQ(pushes.VerdictOf(Step{2}), std::nullopt);
  EXPECT_EQ(pushes.VerdictOf(Step{3}), std::nullopt);
  EXPECT_EQ(pushes.VerdictOf(Step{4}), Verdict::kRefused);
  EXPECT_EQ(pushes.VerdictOf(Step{5}), Verdict::kAccept);
  EXPECT_EQ(pushes.VerdictOf(Step{6}), std::nullopt);
  table.Finish(kA, Step{36}, Verdict::kLate);
  EXPECT_EQ(table.of(kA).last_push->VerdictOf(Step{4}), Verdict::kRefused);
  EXPECT_EQ(table.of(kA).last_push->VerdictOf(Step{1}), std::nullopt);
  table.Finish(kA, Step{68}, Verdict::kAccept);
  EXPECT_EQ(table.of(kA).last_push->VerdictOf(Step{36}), Verdict::kLate);
  EXPECT_EQ(table.of(kA).last_push->VerdictOf(Step{5}), std::nullopt);
  table.Finish(kA, Step{200}, Verdict::kAccept);
  EXPECT_EQ(table.of(kA).last_push->earlier, 0u);
}

TEST(WorkerTableTest, AnAnswerLetsAWorkerComputeLaterSteps) {
  WorkerTable table = TwoLive();
  EXPECT_EQ(table.FirstNotBegun(), Step{0});
  const std::vector<ReadAnswer> answers = table.ReleaseReads(Step{0}, 3, Step{2});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].last, Step{2});
  EXPECT_EQ(table.FirstNotBegun(), Step{3});
  // A worker that has finished these steps is not computing them.
  table.Finish(kA, Step{2}, Verdict::kAccept);
  table.Finish(kB, Step{2}, Verdict::kAccept);
  EXPECT_EQ(table.FirstNotBegun(), Step{0});
}

TEST(WorkerTableTest, AWorkerThatLeftOrFinishedMayNotPushTheFrontier) {
  WorkerTable table = TwoLive();
  EXPECT_TRUE(table.MayPushFrontier(kA));
  table.Expire(kA);
  EXPECT_TRUE(table.MayPushFrontier(kA));
  table.Finish(kA, Step{0}, Verdict::kRefused);
  EXPECT_FALSE(table.MayPushFrontier(kA));
  table.Leave(kB);
  EXPECT_FALSE(table.MayPushFrontier(kB));
}

}  // namespace
}  // namespace thinwire
