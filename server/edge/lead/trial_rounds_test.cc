#include "server/edge/lead/trial_rounds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/spec/push_spec.h"
#include "proto/precision.pb.h"

namespace thinwire {
namespace {

using Action = TrialRounds::Action;

constexpr uint64_t kTrial = 16;
constexpr uint64_t kContinue = 40;
constexpr uint64_t kEnd = 200;

AdaptiveSpec SpecOf(size_t arm_count) {
  AdaptiveSpec spec{.speculate_steps = kTrial, .continue_steps = kContinue};
  const CodecId ids[] = {CodecId::kFp32, CodecId::kFp8E5m2, CodecId::kOneBit};
  for (size_t i = 0; i < arm_count; ++i) spec.arms.push_back({.codec = {.id = ids[i]}});
  return spec;
}

PrecisionTest TestAt(uint64_t step, double accuracy, double seconds = 0.1, uint64_t end = kEnd) {
  PrecisionTest test;
  test.set_step(step);
  test.set_accuracy(accuracy);
  test.set_seconds_per_step(seconds);
  test.set_end(end);
  return test;
}

// Tests the present trial, in which the accuracy rises from START by GAIN. Returns the action after
// the last test, and expects none before.
Action Try(TrialRounds& rounds, double start, double gain, double seconds = 0.1) {
  Action action = Action::kNone;
  for (uint64_t i = 0; i <= kTestsPerTrial; ++i) {
    EXPECT_EQ(action, Action::kNone);
    const double part = static_cast<double>(i) / kTestsPerTrial;
    action = rounds.Add(
        TestAt(rounds.begin().value + i * kTrial / kTestsPerTrial, start + gain * part, seconds));
  }
  return action;
}

TEST(TrialRoundsTest, EveryArmIsTriedFromTheSameSnapshot) {
  TrialRounds rounds(SpecOf(3));
  for (uint32_t arm = 0; arm < 3; ++arm) {
    EXPECT_EQ(rounds.arm(), arm);
    EXPECT_TRUE(rounds.tries());
    EXPECT_EQ(rounds.begin(), Step{0});
    EXPECT_EQ(rounds.limit(), Step{kTrial});
    EXPECT_EQ(rounds.snapshot(), std::nullopt);
    EXPECT_EQ(Try(rounds, 0.1, arm == 1 ? 0.4 : 0), Action::kReturn);
  }
  EXPECT_FALSE(rounds.tries());
  EXPECT_EQ(rounds.arm(), 1u);
  EXPECT_EQ(rounds.begin(), Step{0}) << "the run goes on from the snapshot";
  ASSERT_EQ(rounds.state().decision_size(), 1);
  const PrecisionDecision& decision = rounds.state().decision(0);
  EXPECT_EQ(decision.chosen(), "fp8_e5m2");
  EXPECT_EQ(decision.step(), 0);
  EXPECT_EQ(decision.next_step(), kTrial + kContinue);
  EXPECT_EQ(decision.accuracy(), 0.1);
  ASSERT_EQ(decision.candidate_size(), 3);
  EXPECT_GT(decision.candidate(1).predicted_accuracy(), decision.candidate(0).predicted_accuracy());
}

TEST(TrialRoundsTest, TheLastTrialGoesOnIfItsArmIsChosen) {
  TrialRounds rounds(SpecOf(2));
  EXPECT_EQ(Try(rounds, 0.1, 0), Action::kReturn);
  EXPECT_EQ(Try(rounds, 0.1, 0.4), Action::kStore);
  EXPECT_EQ(rounds.arm(), 1u);
  EXPECT_FALSE(rounds.tries());
}

TEST(TrialRoundsTest, TheFasterOfTwoEqualCodecsIsChosen) {
  TrialRounds rounds(SpecOf(2));
  EXPECT_EQ(Try(rounds, 0.1, 0.4, /*seconds=*/0.1), Action::kReturn);
  EXPECT_EQ(Try(rounds, 0.1, 0.4, /*seconds=*/0.3), Action::kReturn);
  EXPECT_EQ(rounds.arm(), 0u);
}

TEST(TrialRoundsTest, TheNextRoundBeginsAtItsSnapshotAndTriesTheChosenArmLast) {
  TrialRounds rounds(SpecOf(2));
  Try(rounds, 0.1, 0.4);
  Try(rounds, 0.1, 0);
  const Step next{kTrial + kContinue};
  EXPECT_EQ(rounds.snapshot(), next);
  EXPECT_EQ(rounds.limit(), next + 1) << "every worker saves its state before the step";
  EXPECT_EQ(rounds.Advance(next, Step{0}), Action::kNone);
  EXPECT_EQ(rounds.Advance(next, next), Action::kNone) << "a worker may not have begun the step";
  EXPECT_EQ(rounds.Advance(next + 1, Step{0}), Action::kNone) << "a server has no checkpoint";
  EXPECT_EQ(rounds.Advance(next + 1, next), Action::kReturn);
  EXPECT_EQ(rounds.begin(), next);
  EXPECT_EQ(rounds.arm(), 1u);
  EXPECT_EQ(rounds.limit(), next + kTrial);
  EXPECT_EQ(Try(rounds, 0.5, 0), Action::kReturn);
  EXPECT_EQ(rounds.arm(), 0u);
  EXPECT_EQ(Try(rounds, 0.5, 0.1), Action::kStore);
  ASSERT_EQ(rounds.state().decision_size(), 2);
  EXPECT_EQ(rounds.state().decision(1).accuracy(), 0.5);
  // The trials of a third round at step 112 would end at step 128.
  EXPECT_EQ(rounds.snapshot(), Step{112});
}

TEST(TrialRoundsTest, NoTrialBeginsWhoseEndIsNotBeforeThatOfTheRun) {
  TrialRounds rounds(SpecOf(1));
  const uint64_t end = kTrial + kContinue + kTrial;
  rounds.Add(TestAt(0, 0.1, 0.1, end));
  EXPECT_EQ(rounds.Add(TestAt(kTrial, 0.2, 0.1, end)), Action::kStore);
  EXPECT_EQ(rounds.snapshot(), std::nullopt);
  EXPECT_EQ(rounds.limit(), std::nullopt);
  EXPECT_EQ(rounds.state().decision(0).next_step(), end);

  TrialRounds longer(SpecOf(1));
  longer.Add(TestAt(0, 0.1, 0.1, end + 1));
  longer.Add(TestAt(kTrial, 0.2, 0.1, end + 1));
  EXPECT_EQ(longer.snapshot(), Step{kTrial + kContinue});
}

TEST(TrialRoundsTest, ARunThatIsShorterThanATrialUsesTheFirstArm) {
  TrialRounds rounds(SpecOf(3));
  EXPECT_EQ(rounds.Add(TestAt(0, 0.1, 0.1, /*end=*/kTrial)), Action::kStore);
  EXPECT_FALSE(rounds.tries());
  EXPECT_EQ(rounds.arm(), 0u);
  EXPECT_EQ(rounds.limit(), std::nullopt);
  EXPECT_EQ(rounds.state().decision_size(), 0);
}

TEST(TrialRoundsTest, TestsThatAreKnownImpossibleOrOfOtherStepsAreIgnored) {
  TrialRounds rounds(SpecOf(2));
  EXPECT_EQ(rounds.Add(TestAt(0, 0.1)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(8, 0.2)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(8, 0.3)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(0, 0.3)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(kTrial + 1, 0.3)), Action::kNone);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(rounds.Add(TestAt(kTrial, nan)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(kTrial, 1.1)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(kTrial, 0.3, nan)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(kTrial, 0.3, -1)), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(kTrial, 0.4)), Action::kReturn);
  ASSERT_EQ(rounds.state().trial_size(), 1);
  const auto& trial = rounds.state().trial(0);
  ASSERT_EQ(trial.x_size(), 2);
  EXPECT_EQ(trial.x(0), 8);
  EXPECT_EQ(trial.y(0), 0.2);
  EXPECT_EQ(trial.y(1), 0.4);
  EXPECT_EQ(rounds.state().accuracy(), 0.1);
}

TEST(TrialRoundsTest, AnotherProcessContinuesWithTheStoredState) {
  TrialRounds first(SpecOf(3));
  Try(first, 0.1, 0.4);
  // The second trial is lost with its tests.
  first.Add(TestAt(0, 0.1));
  first.Add(TestAt(8, 0.1));
  TrialRounds second(SpecOf(3));
  ASSERT_TRUE(second.Restore(first.state()).ok());
  EXPECT_EQ(second.arm(), 1u);
  EXPECT_TRUE(second.tries());
  EXPECT_EQ(Try(second, 0.1, 0), Action::kReturn);
  EXPECT_EQ(Try(second, 0.1, 0), Action::kReturn);
  EXPECT_EQ(second.arm(), 0u);
  EXPECT_EQ(second.state().decision(0).candidate_size(), 3);
}

TEST(TrialRoundsTest, AStateOfAnotherJobIsRefused) {
  PrecisionState state;
  state.set_arm(3);
  EXPECT_EQ(TrialRounds(SpecOf(3)).Restore(state).message(),
            "an unknown candidate (expected below 3, got 3)");
  state.set_arm(0);
  state.add_trial();
  EXPECT_EQ(TrialRounds(SpecOf(3)).Restore(state).message(), "a trial without tests");
}

}  // namespace
}  // namespace thinwire
