#include "server/core/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace thinwire {
namespace {

constexpr WorkerId kA{0};
constexpr WorkerId kB{1};
constexpr Incarnation kFirst{1};
constexpr Incarnation kSecond{2};

// Workers A and B, both live and reading step 0.
Progress TwoLive() {
  Progress progress(2);
  for (const WorkerId w : {kA, kB}) {
    progress.Join(w, kFirst);
    progress.Read(w, {.step = Step{0}});
  }
  return progress;
}

TEST(ProgressTest, AWorkerIsLiveOnlyAfterItsFirstRead) {
  Progress progress(2);
  progress.Join(kA, kFirst);
  EXPECT_EQ(progress.live_count(), 0u);
  EXPECT_EQ(progress.SmallestLiveNext(), std::nullopt);
  progress.Read(kA, {.step = Step{3}});
  EXPECT_EQ(progress.live_count(), 1u);
  EXPECT_EQ(progress.SmallestLiveNext(), Step{3});
}

TEST(ProgressTest, ReadFinishesEveryStepBelowIt) {
  Progress progress = TwoLive();
  progress.Read(kA, {.step = Step{5}});
  EXPECT_EQ(progress.of(kA).next, Step{5});
  EXPECT_EQ(progress.LargestNext(), Step{5});
  EXPECT_EQ(progress.SmallestLiveNext(), Step{0});
}

TEST(ProgressTest, OvertakenReadChangesNothing) {
  Progress progress = TwoLive();
  progress.Read(kA, {.step = Step{5}});
  const WorkerProgress before = progress.of(kA);
  progress.Read(kA, {.step = Step{4}});
  EXPECT_EQ(progress.of(kA), before);
}

TEST(ProgressTest, SameReadIsAnsweredAgain) {
  Progress progress = TwoLive();
  EXPECT_EQ(progress.ReleaseReads(Step{0}).size(), 2u);
  EXPECT_TRUE(progress.ReleaseReads(Step{0}).empty());
  progress.Read(kA, {.step = Step{0}, .form = CodecId::kBf16});
  const std::vector<ReadAnswer> want = {{kA, kFirst, Step{0}, CodecId::kBf16}};
  EXPECT_EQ(progress.ReleaseReads(Step{0}), want);
}

TEST(ProgressTest, ReadsForLaterStepsStay) {
  Progress progress = TwoLive();
  progress.Read(kB, {.step = Step{2}});
  EXPECT_EQ(progress.ReleaseReads(Step{1}).size(), 1u);
  EXPECT_EQ(progress.Waiting(), std::vector<WorkerId>{kB});
}

TEST(ProgressTest, FinishingAStepNeverLowersNext) {
  Progress progress = TwoLive();
  progress.Read(kA, {.step = Step{9}});
  progress.Finish(kA, Step{3}, Verdict::kLate);
  EXPECT_EQ(progress.of(kA).next, Step{9});
  progress.Finish(kA, Step{9}, Verdict::kAccept);
  EXPECT_EQ(progress.of(kA).next, Step{10});
}

TEST(ProgressTest, StepsSaturateAtTheLargest) {
  const Step last{std::numeric_limits<uint64_t>::max()};
  EXPECT_EQ(StepsAfter(last, 1), last);
  EXPECT_EQ(StepsAfter(Step{7}, std::numeric_limits<uint64_t>::max()), last);
  EXPECT_EQ(StepsAfter(Step{7}, 2), Step{9});
  Progress progress = TwoLive();
  progress.Finish(kA, last, Verdict::kAccept);
  EXPECT_EQ(progress.of(kA).next, last);
}

TEST(ProgressTest, ExpiryKeepsTheWaitingReadAndLeavingDropsIt) {
  Progress progress = TwoLive();
  progress.Expire(kA);
  progress.Leave(kB);
  EXPECT_EQ(progress.live_count(), 0u);
  EXPECT_EQ(progress.Waiting(), std::vector<WorkerId>{kA});
}

TEST(ProgressTest, AMessageMakesAnExpiredWorkerLive) {
  Progress progress = TwoLive();
  progress.Expire(kA);
  EXPECT_EQ(progress.UnfinishedWorkers(), std::vector<WorkerId>{kB});
  progress.MarkHeard(kA);
  EXPECT_EQ(progress.live_count(), 2u);
}

TEST(ProgressTest, ASuccessorKeepsOnlyNext) {
  Progress progress = TwoLive();
  progress.Finish(kA, Step{4}, Verdict::kAccept);
  progress.Join(kA, kSecond);
  EXPECT_EQ(progress.of(kA).next, Step{5});
  EXPECT_FALSE(progress.of(kA).live());
  EXPECT_FALSE(progress.of(kA).waiting.has_value());
  EXPECT_FALSE(progress.of(kA).last_push.has_value());
  EXPECT_FALSE(progress.IsCurrent(kA, kFirst));
  EXPECT_TRUE(progress.IsCurrent(kA, kSecond));
}

TEST(ProgressTest, AnOlderOrEqualIncarnationChangesNothing) {
  Progress progress = TwoLive();
  const WorkerProgress before = progress.of(kA);
  progress.Join(kA, kFirst);
  progress.Join(kA, Incarnation{0});
  EXPECT_EQ(progress.of(kA), before);
}

TEST(ProgressTest, SuccessorMayReadBelowItsPredecessor) {
  Progress progress = TwoLive();
  progress.Read(kA, {.step = Step{9}});
  progress.Join(kA, kSecond);
  progress.Read(kA, {.step = Step{2}});
  EXPECT_EQ(progress.of(kA).next, Step{9});
  EXPECT_EQ(progress.ReleaseReads(Step{2}).size(), 2u);
}

TEST(ProgressTest, AWorkerThatLeftOrFinishedMayNotPushTheFrontier) {
  Progress progress = TwoLive();
  EXPECT_TRUE(progress.MayPushFrontier(kA));
  progress.Expire(kA);
  EXPECT_TRUE(progress.MayPushFrontier(kA));
  progress.Finish(kA, Step{0}, Verdict::kRefused);
  EXPECT_FALSE(progress.MayPushFrontier(kA));
  progress.Leave(kB);
  EXPECT_FALSE(progress.MayPushFrontier(kB));
}

}  // namespace
}  // namespace thinwire
