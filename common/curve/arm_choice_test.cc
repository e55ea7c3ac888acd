#include "common/curve/arm_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace thinwire {
namespace {

// A trial of 100 steps from step 200 on, whose curve rises from START to FINAL.
Trial TrialOf(double start, double final, double seconds_per_step, double noise = 0) {
  Trial trial{.seconds_per_step = seconds_per_step};
  for (int i = 1; i <= 10; ++i) {
    const double error = i % 2 == 0 ? noise : -noise;
    trial.curve.push_back(
        {.x = 200 + 10.0 * i, .y = final - (final - start) * std::exp(-0.4 * i) + error});
  }
  return trial;
}

constexpr TrialStart kStart = {.accuracy = 0.5, .step = 200, .next_decision = 700};

TEST(ArmChoiceTest, TheLargestGainPerSecondIsChosen) {
  // The exact arm gains more, but it takes three times as long.
  const std::vector<Trial> trials = {TrialOf(0.5, 0.8, 3), TrialOf(0.5, 0.75, 1),
                                     TrialOf(0.5, 0.55, 0.9)};
  const ArmChoice choice = ChooseArm(trials, kStart, std::nullopt);
  EXPECT_EQ(choice.chosen, 1);
  ASSERT_EQ(choice.gains.size(), 3);
  EXPECT_GT(choice.gains[0].predicted.mean, choice.gains[1].predicted.mean);
  EXPECT_NEAR(choice.gains[1].per_second, (choice.gains[1].predicted.mean - 0.5) / 500, 1e-12);
  EXPECT_NEAR(choice.gains[1].deviation, choice.gains[1].predicted.deviation / 500, 1e-12);
}

TEST(ArmChoiceTest, ADifferenceWithinOneDeviationKeepsTheCurrentArm) {
  const std::vector<Trial> trials = {TrialOf(0.5, 0.602, 1, 0.02), TrialOf(0.5, 0.6, 1, 0.02)};
  EXPECT_EQ(ChooseArm(trials, kStart, std::nullopt).chosen, 0);
  EXPECT_EQ(ChooseArm(trials, kStart, 0).chosen, 0);
  EXPECT_EQ(ChooseArm(trials, kStart, 1).chosen, 1);
}

TEST(ArmChoiceTest, AClearlyBetterArmReplacesTheCurrentOne) {
  const std::vector<Trial> trials = {TrialOf(0.5, 0.55, 1, 0.002), TrialOf(0.5, 0.8, 1, 0.002)};
  EXPECT_EQ(ChooseArm(trials, kStart, 0).chosen, 1);
}

}  // namespace
}  // namespace thinwire
