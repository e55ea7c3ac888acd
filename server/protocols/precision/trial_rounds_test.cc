#include "server/protocols/precision/trial_rounds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/model/partition.h"
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
    EXPECT_EQ(rounds.arms()[0], arm);
    EXPECT_TRUE(rounds.tries());
    EXPECT_EQ(rounds.begin(), Step{0});
    EXPECT_EQ(rounds.limit(), Step{kTrial});
    EXPECT_EQ(rounds.snapshot(), std::nullopt);
    EXPECT_EQ(Try(rounds, 0.1, arm == 1 ? 0.4 : 0), Action::kReturn);
  }
  EXPECT_FALSE(rounds.tries());
  EXPECT_EQ(rounds.arms()[0], 1u);
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
  EXPECT_EQ(rounds.arms()[0], 1u);
  EXPECT_FALSE(rounds.tries());
}

TEST(TrialRoundsTest, TheFasterOfTwoEqualCodecsIsChosen) {
  TrialRounds rounds(SpecOf(2));
  EXPECT_EQ(Try(rounds, 0.1, 0.4, /*seconds=*/0.1), Action::kReturn);
  EXPECT_EQ(Try(rounds, 0.1, 0.4, /*seconds=*/0.3), Action::kReturn);
  EXPECT_EQ(rounds.arms()[0], 0u);
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
  EXPECT_EQ(rounds.arms()[0], 1u);
  EXPECT_EQ(rounds.limit(), next + kTrial);
  EXPECT_EQ(Try(rounds, 0.5, 0), Action::kReturn);
  EXPECT_EQ(rounds.arms()[0], 0u);
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
  EXPECT_EQ(rounds.arms()[0], 0u);
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
  PrecisionTest impossible = TestAt(kTrial, 0.3);
  impossible.set_encoding_error(nan);
  EXPECT_EQ(rounds.Add(impossible), Action::kNone);
  EXPECT_EQ(rounds.Add(TestAt(kTrial, 0.4)), Action::kReturn);
  ASSERT_EQ(rounds.state().trial_size(), 1);
  const auto& trial = rounds.state().trial(0);
  ASSERT_EQ(trial.x_size(), 2);
  EXPECT_EQ(trial.x(0), 8);
  EXPECT_EQ(trial.y(0), 0.2);
  EXPECT_EQ(trial.y(1), 0.4);
  EXPECT_EQ(rounds.state().accuracy(), 0.1);
}

TEST(TrialRoundsTest, ALastTestOfANewEvaluatorHasTheTimesOfItsPredecessor) {
  TrialRounds rounds(SpecOf(2));
  rounds.Add(TestAt(0, 0.1));
  rounds.Add(TestAt(8, 0.2, /*seconds=*/0.3));
  PrecisionTest last = TestAt(kTrial, 0.4);
  last.clear_seconds_per_step();
  EXPECT_EQ(rounds.Add(last), Action::kReturn);
  ASSERT_EQ(rounds.state().trial_size(), 1);
  EXPECT_EQ(rounds.state().trial(0).seconds_per_step(), 0.3);
}

TEST(TrialRoundsTest, ATrialWhoseTimeNobodyMeasuredIsRepeated) {
  TrialRounds rounds(SpecOf(2));
  PrecisionTest last = TestAt(kTrial, 0.4);
  last.clear_seconds_per_step();
  EXPECT_EQ(rounds.Add(last), Action::kReturn);
  EXPECT_EQ(rounds.state().trial_size(), 0);
  EXPECT_EQ(rounds.arms()[0], 0u);
  EXPECT_TRUE(rounds.tries());
  EXPECT_EQ(Try(rounds, 0.1, 0.4), Action::kReturn);
  EXPECT_EQ(rounds.state().trial_size(), 1);
  EXPECT_EQ(rounds.arms()[0], 1u);
}

TEST(TrialRoundsTest, LaterRoundsChangeOneKindOfTensorsEach) {
  AdaptiveSpec spec = SpecOf(2);
  spec.per_layer = true;
  const Partition partition =
      *Partition::Make({{"conv", {8, 3, 3}}, {"w", {8, 8}}, {"b", {8}}}, 4096, 1);
  TrialRounds rounds(spec);
  rounds.Begin(partition);
  const auto begin_round = [&] {
    const Step next = *rounds.snapshot();
    EXPECT_EQ(rounds.Advance(next + 1, next), Action::kReturn);
  };
  Try(rounds, 0.1, 0.4);
  Try(rounds, 0.1, 0);
  EXPECT_EQ(rounds.arms(), (KindArms{0, 0, 0})) << "the first decision is that of all layers";

  begin_round();
  EXPECT_EQ(rounds.arms(), (KindArms{1, 0, 0}));
  Try(rounds, 0.2, 0.4);
  EXPECT_EQ(rounds.arms(), (KindArms{0, 0, 0})) << "the arm of the matrices is tried last";
  Try(rounds, 0.2, 0);
  EXPECT_FALSE(rounds.tries());
  EXPECT_EQ(rounds.arms(), (KindArms{1, 0, 0}));

  begin_round();
  EXPECT_EQ(rounds.arms(), (KindArms{1, 1, 0}));
  // Another process continues.
  TrialRounds second(spec);
  ASSERT_TRUE(second.Restore(rounds.state()).ok());
  second.Begin(partition);
  Try(second, 0.3, 0);
  Try(second, 0.3, 0.4);
  EXPECT_EQ(second.arms(), (KindArms{1, 0, 0}));
  const auto& decisions = second.state().decision();
  ASSERT_EQ(decisions.size(), 3);
  EXPECT_FALSE(decisions[0].has_layers());
  EXPECT_EQ(decisions[1].layers(), "matrices");
  EXPECT_EQ(decisions[1].chosen(), "fp8_e5m2");
  EXPECT_EQ(decisions[2].layers(), "convolutions");
  EXPECT_EQ(decisions[2].chosen(), "fp32");
}

TEST(TrialRoundsTest, AnArmWhoseErrorExceedsItsValuesIsRemovedAfterItsFirstTrial) {
  AdaptiveSpec spec = SpecOf(3);
  spec.prune = true;
  TrialRounds rounds(spec);
  const auto try_with_error = [&](double gain, std::optional<double> error) {
    for (uint64_t i = 0; i < kTestsPerTrial; ++i) {
      const double part = static_cast<double>(i) / kTestsPerTrial;
      rounds.Add(TestAt(rounds.begin().value + i * 2, 0.1 + gain * part));
    }
    PrecisionTest last = TestAt(rounds.begin().value + kTrial, 0.1 + gain);
    if (error.has_value()) last.set_encoding_error(*error);
    return rounds.Add(last);
  };
  try_with_error(0.2, std::nullopt);
  try_with_error(0.4, 1.25);
  try_with_error(0, 1.0);
  ASSERT_EQ(rounds.state().decision_size(), 1);
  const PrecisionDecision& decision = rounds.state().decision(0);
  EXPECT_EQ(decision.chosen(), "fp32") << "the best one is removed";
  ASSERT_EQ(decision.candidate_size(), 3);
  EXPECT_FALSE(decision.candidate(0).has_encoding_error());
  EXPECT_EQ(decision.candidate(1).encoding_error(), 1.25);
  EXPECT_FALSE(decision.candidate(1).has_predicted_accuracy());
  EXPECT_TRUE(decision.candidate(2).has_predicted_accuracy());

  // The next round, in another process, has two trials. Later errors remove nothing.
  TrialRounds second(spec);
  ASSERT_TRUE(second.Restore(rounds.state()).ok());
  const Step next = *second.snapshot();
  EXPECT_EQ(second.Advance(next + 1, next), Action::kReturn);
  EXPECT_EQ(second.arms()[0], 2u);
  Try(second, 0.3, 0);
  EXPECT_EQ(second.arms()[0], 0u);
  Try(second, 0.3, 0.1);
  EXPECT_EQ(second.state().decision(1).candidate_size(), 2);
}

TEST(TrialRoundsTest, NoArmIsRemovedIfNoneWouldRemain) {
  AdaptiveSpec spec = SpecOf(1);
  spec.prune = true;
  TrialRounds rounds(spec);
  rounds.Add(TestAt(0, 0.1));
  PrecisionTest last = TestAt(kTrial, 0.2);
  last.set_encoding_error(2);
  EXPECT_EQ(rounds.Add(last), Action::kStore);
  EXPECT_TRUE(rounds.state().removed().empty());
  EXPECT_TRUE(rounds.state().decision(0).candidate(0).has_predicted_accuracy());
}

TEST(TrialRoundsTest, AnotherProcessContinuesWithTheStoredState) {
  TrialRounds first(SpecOf(3));
  Try(first, 0.1, 0.4);
  // The second trial is lost with its tests.
  first.Add(TestAt(0, 0.1));
  first.Add(TestAt(8, 0.1));
  TrialRounds second(SpecOf(3));
  ASSERT_TRUE(second.Restore(first.state()).ok());
  EXPECT_EQ(second.arms()[0], 1u);
  EXPECT_TRUE(second.tries());
  EXPECT_EQ(Try(second, 0.1, 0), Action::kReturn);
  EXPECT_EQ(Try(second, 0.1, 0), Action::kReturn);
  EXPECT_EQ(second.arms()[0], 0u);
  EXPECT_EQ(second.state().decision(0).candidate_size(), 3);
}

TEST(TrialRoundsTest, AStateOfAnotherJobIsRefused) {
  PrecisionState state;
  state.set_arm(3);
  EXPECT_EQ(TrialRounds(SpecOf(3)).Restore(state).message(),
            "an unknown candidate (expected below 3, got 3)");
  state.set_arm(0);
  state.add_chosen(0);
  EXPECT_EQ(TrialRounds(SpecOf(3)).Restore(state).message(),
            "candidates for 1 kinds of tensors (expected 3)");
  state.clear_chosen();
  state.add_trial();
  EXPECT_EQ(TrialRounds(SpecOf(3)).Restore(state).message(), "a trial without tests");
}

}  // namespace
}  // namespace thinwire
