#include "server/protocols/rules/wait_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

constexpr double kExamples = 32;  // of a push
constexpr uint32_t kTimes = 100;  // of each worker

StepSeconds Constant(uint32_t workers) {
  return StepSeconds(workers, std::vector<double>(kTimes, 0.1));
}

// Returns the quantiles of the exponential distribution with the mean 0.1, for each worker in
// another order.
StepSeconds Exponential(uint32_t workers) {
  StepSeconds times(workers);
  for (uint32_t w = 0; w < workers; ++w) {
    std::mt19937 random(w);
    for (uint32_t i = 0; i < kTimes; ++i) {
      times[w].push_back(-0.1 * std::log1p(-(i + 0.5) / kTimes));
    }
    for (uint32_t i = kTimes - 1; i > 0; --i) {
      std::swap(times[w][i], times[w][random() % (i + 1)]);
    }
  }
  return times;
}

std::optional<uint64_t> Backup(const StepSeconds& times, uint32_t current,
                               std::optional<double> noise_scale = std::nullopt) {
  const auto choice = ChooseBackup(times, kExamples, noise_scale, current);
  return choice.has_value() ? std::optional(choice->value) : std::nullopt;
}

std::optional<uint64_t> Slack(const StepSeconds& times, uint64_t current) {
  const auto choice = ChooseSlack(times, current);
  return choice.has_value() ? std::optional(choice->value) : std::nullopt;
}

// The times are those of experiments/n_plus_b.textproto: T(N, b, N) for eight workers. If late
// workers began every step with the others, two backup workers would need 0.122 s.
TEST(WaitChoiceTest, TheTimeOfAStepIsThatOfLateWorkersWhichEndTheirOldStep) {
  EXPECT_NEAR(BackupStep(Exponential(8), 0).seconds, 0.2718, 0.012);
  EXPECT_NEAR(BackupStep(Exponential(8), 1).seconds, 0.1933, 0.009);
  EXPECT_NEAR(BackupStep(Exponential(8), 2).seconds, 0.1534, 0.007);
}

TEST(WaitChoiceTest, LatePushesArePushesOfAStep) {
  StepSeconds times = Constant(8);
  for (double& seconds : times[5]) seconds *= 4;
  const MeanStep step = BackupStep(times, 1);
  EXPECT_NEAR(step.seconds, 0.1, 1e-9);
  EXPECT_NEAR(step.pushes, 7.25, 0.01);
  EXPECT_DOUBLE_EQ(BackupStep(times, 0).pushes, 8);
}

TEST(WaitChoiceTest, EquallyFastWorkersNeedNoBackup) {
  EXPECT_EQ(Backup(Constant(8), 0), std::nullopt);
  EXPECT_EQ(Backup(Constant(8), 2), 0u);
  EXPECT_EQ(Backup(Constant(8), 1, /*noise_scale=*/100000), 0u);
}

TEST(WaitChoiceTest, ASlowWorkerBecomesTheBackup) {
  StepSeconds times = Constant(8);
  for (double& seconds : times[5]) seconds *= 3;
  EXPECT_EQ(Backup(times, 0), 1u);
  EXPECT_EQ(Backup(times, 1), std::nullopt);
  EXPECT_EQ(Backup(times, 4), 1u);
  EXPECT_EQ(Backup(times, 0, /*noise_scale=*/10), 1u);
  for (double& seconds : times[2]) seconds *= 3;
  EXPECT_EQ(Backup(times, 1), 2u);
}

// With exponential times, every further backup worker shortens the waits, so the largest number is
// the best.
TEST(WaitChoiceTest, ExponentialTimesNeedTheMostBackupWorkers) {
  EXPECT_EQ(Backup(Exponential(8), 0), 4u);
  EXPECT_EQ(Backup(Exponential(8), 4), std::nullopt);
  EXPECT_EQ(Backup(Exponential(8), 0, /*noise_scale=*/20), 4u);
}

TEST(WaitChoiceTest, MoreBackupThanHalfOfTheWorkersIsTakenBack) {
  EXPECT_EQ(Backup(Exponential(8), 6), 4u);
}

// Two workers have paused in their few steps. The others will pause, too.
TEST(WaitChoiceTest, PausesOfSomeWorkersAreExpectedOfAll) {
  StepSeconds times(8, std::vector<double>(8, 0.1));
  times[1][3] = 1.1;
  times[6][5] = 1.1;
  EXPECT_EQ(Backup(times, 0), 4u);
}

TEST(WaitChoiceTest, ASmallGainChangesNothing) {
  StepSeconds times = Constant(20);
  for (double& seconds : times[0]) seconds *= 1.04;
  EXPECT_EQ(Backup(times, 0), std::nullopt);
  EXPECT_EQ(Backup(times, 1), std::nullopt) << "a smaller number would lose more than 2 %";
  for (double& seconds : times[0]) seconds *= 1.04;
  EXPECT_EQ(Backup(times, 0), 1u);
}

TEST(WaitChoiceTest, TheOrderOfTheWorkersDoesNotMatter) {
  StepSeconds times = Exponential(6);
  for (double& seconds : times[4]) seconds *= 2;
  const auto choice = ChooseBackup(times, kExamples, std::nullopt, 0);
  const double part = WaitingPart(times, 2);
  std::ranges::reverse(times);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(ChooseBackup(times, kExamples, std::nullopt, 0)->reason, choice->reason);
  EXPECT_EQ(WaitingPart(times, 2), part);
}

TEST(WaitChoiceTest, ManyWorkersHaveAChoice) {
  StepSeconds times = Constant(500);
  for (uint32_t w = 0; w < 20; ++w) {
    for (double& seconds : times[w]) seconds *= 10;
  }
  const auto backup = Backup(times, 0);
  ASSERT_TRUE(backup.has_value());
  EXPECT_GE(*backup, 20u);
  EXPECT_LE(*backup, 28u);
}

TEST(WaitChoiceTest, WaitingInModeSspIsThatOfTheFastWorkers) {
  EXPECT_EQ(WaitingPart(Constant(4), 0), 0);
  StepSeconds times = Constant(4);
  for (double& seconds : times[3]) seconds *= 2;
  // In the long run, three of four workers wait for half of their time, whatever the slack is.
  EXPECT_NEAR(WaitingPart(times, 0), 0.375, 1e-9);
  EXPECT_NEAR(WaitingPart(times, 4), 0.375, 0.001);
}

TEST(WaitChoiceTest, SlackThatSavesNoWaitingIsNotChosen) {
  EXPECT_EQ(Slack(Constant(4), 4), 0u);
  EXPECT_EQ(Slack(Constant(4), 1), std::nullopt) << "a change costs a wait";
  StepSeconds times = Constant(4);
  for (double& seconds : times[3]) seconds *= 2;
  EXPECT_EQ(Slack(times, 8), 0u);
}

TEST(WaitChoiceTest, SlackGrowsUntilTheWorkersWaitLittle) {
  const StepSeconds times = Exponential(8);
  const auto slack = Slack(times, 0);
  ASSERT_TRUE(slack.has_value());
  const double limit = WaitingPart(times, kLargestSlack) + kMostExtraWaiting;
  EXPECT_LE(WaitingPart(times, *slack), limit);
  EXPECT_GT(WaitingPart(times, *slack - 1), limit);
  EXPECT_EQ(Slack(times, *slack), std::nullopt);
}

}  // namespace
}  // namespace thinwire
