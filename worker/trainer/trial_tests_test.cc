#include "worker/trainer/trial_tests.h"

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
    if (tests.IsDue(Step{40}, Step{40 + done}, Step{10'000})) due.push_back(done);
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

TEST(TrialTestsTest, OfATrialLongerThanTheRunOnlyTheFirstTestIsDue) {
  const TrialTests tests(16);
  EXPECT_FALSE(tests.IsDue(Step{40}, Step{38}, Step{100})) << "before the trial";
  EXPECT_TRUE(tests.IsDue(Step{40}, Step{42}, Step{57}));
  EXPECT_TRUE(tests.IsDue(Step{40}, Step{40}, Step{56}));
  EXPECT_FALSE(tests.IsDue(Step{40}, Step{42}, Step{56}));
}

TEST(TrialTestsTest, TheMessageOfATestStatesWhatIsKnown) {
  TrialTests tests(16);
  const PrecisionTest first = tests.MessageOf(Step{0}, 0.5, std::nullopt, Step{90});
  EXPECT_EQ(first.ShortDebugString(), "step: 0 accuracy: 0.5 end: 90");
  tests.Arrive(Step{0}, Step{0}, absl::Seconds(1));
  tests.Arrive(Step{0}, Step{2}, absl::Seconds(5));
  const PrecisionTest last = tests.MessageOf(Step{16}, 0.75, 0.25, Step{90});
  EXPECT_EQ(last.ShortDebugString(),
            "step: 16 accuracy: 0.75 seconds_per_step: 2 end: 90 encoding_error: 0.25");
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
