#include "worker/trial_tests.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "common/spec/push_spec.h"

namespace thinwire {
namespace {

std::vector<uint64_t> DueSteps(uint64_t trial_steps) {
  const TrialTests tests(trial_steps);
  std::vector<uint64_t> due;
  for (uint64_t done = 0; done < 2 * trial_steps; ++done) {
    if (tests.IsDue(done)) due.push_back(done);
  }
  return due;
}

TEST(TrialTestsTest, TheTestsDivideTheTrialIntoEqualParts) {
  EXPECT_EQ(DueSteps(16), (std::vector<uint64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(DueSteps(20), (std::vector<uint64_t>{0, 2, 5, 7, 10, 12, 15, 17, 20}));
  for (uint64_t steps = kTestsPerTrial; steps < 200; ++steps) {
    EXPECT_EQ(DueSteps(steps).size(), kTestsPerTrial + 1) << steps;
    EXPECT_EQ(DueSteps(steps).back(), steps);
  }
}

TEST(TrialTestsTest, TheMeasuredPartsBeginWithATest) {
  EXPECT_TRUE(TrialTests(16).BeginsMeasuredParts(10));
  EXPECT_FALSE(TrialTests(16).BeginsMeasuredParts(12));
  EXPECT_TRUE(TrialTests(20).BeginsMeasuredParts(12));
}

TEST(TrialTestsTest, TheTimeOfAStepIsTheMedianOfTheParts) {
  TrialTests tests(16);
  tests.Arrive(Step{100}, Step{100}, absl::Seconds(50));
  EXPECT_EQ(tests.seconds_per_step(), std::nullopt);
  tests.Arrive(Step{100}, Step{102}, absl::Seconds(60));  // 5 s per step
  tests.Arrive(Step{100}, Step{104}, absl::Seconds(64));  // 2 s
  tests.Arrive(Step{100}, Step{106}, absl::Seconds(70));  // 3 s
  EXPECT_EQ(tests.seconds_per_step(), 3.0);
}

TEST(TrialTestsTest, AnotherTrialBeginsWithoutTimes) {
  TrialTests tests(16);
  tests.Arrive(Step{0}, Step{0}, absl::Seconds(1));
  tests.Arrive(Step{0}, Step{2}, absl::Seconds(2));
  // From the same snapshot, as seen by a process that has joined in the middle of the trial.
  tests.Arrive(Step{0}, Step{2}, absl::Seconds(3));
  EXPECT_EQ(tests.seconds_per_step(), std::nullopt);
  tests.Arrive(Step{0}, Step{4}, absl::Seconds(5));
  EXPECT_EQ(tests.seconds_per_step(), 1.0);
  // From a later snapshot.
  tests.Arrive(Step{40}, Step{42}, absl::Seconds(9));
  EXPECT_EQ(tests.seconds_per_step(), std::nullopt);
}

}  // namespace
}  // namespace thinwire
