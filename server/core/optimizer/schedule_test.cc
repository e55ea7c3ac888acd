#include "server/core/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/status/status.h"

namespace thinwire {
namespace {

constexpr uint64_t kPlanned = 1000;

Schedule Made(const ScheduleSpec& spec) { return std::move(Schedule::Make(spec)).value(); }
absl::Status Error(const ScheduleSpec& spec) { return Schedule::Make(spec).status(); }

TEST(ScheduleTest, ConstantNeverChanges) {
  const Schedule schedule = Made({.learning_rate = 0.5});
  for (uint64_t examples : {0, 1, 500, 1000, 5000}) {
    EXPECT_EQ(schedule.Rate(examples, kPlanned), 0.5);
  }
}

TEST(ScheduleTest, WarmUpRisesFromZeroAndEndsWithoutAJump) {
  for (const char* name : {"constant", "step", "polynomial", "cosine"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = Made({.name = name, .learning_rate = 0.5, .warmup = 0.1});
    const Schedule cold = Made({.name = name, .learning_rate = 0.5});
    EXPECT_EQ(schedule.Rate(0, kPlanned), 0);
    EXPECT_DOUBLE_EQ(schedule.Rate(50, kPlanned), 0.25);
    EXPECT_DOUBLE_EQ(schedule.Rate(99, kPlanned), 0.495);
    EXPECT_EQ(schedule.Rate(100, kPlanned), cold.Rate(100, kPlanned));
    EXPECT_EQ(schedule.Rate(700, kPlanned), cold.Rate(700, kPlanned));
  }
}

TEST(ScheduleTest, AWarmUpOfTheWholeRunReachesTheScheduleAtItsEnd) {
  const Schedule schedule = Made({.learning_rate = 0.5, .warmup = 1});
  EXPECT_DOUBLE_EQ(schedule.Rate(999, kPlanned), 0.4995);
  EXPECT_EQ(schedule.Rate(1000, kPlanned), 0.5);
}

TEST(ScheduleTest, StepFallsAtEachPointAndStaysThere) {
  // The order of decay_at does not matter.
  const Schedule schedule =
      Made({.name = "step", .learning_rate = 1, .decay_at = {0.75, 0.5, 1}, .decay_factor = 0.25});
  EXPECT_EQ(schedule.Rate(0, kPlanned), 1);
  EXPECT_EQ(schedule.Rate(499, kPlanned), 1);
  EXPECT_EQ(schedule.Rate(500, kPlanned), 0.25);
  EXPECT_EQ(schedule.Rate(749, kPlanned), 0.25);
  EXPECT_EQ(schedule.Rate(750, kPlanned), 0.0625);
  EXPECT_EQ(schedule.Rate(999, kPlanned), 0.0625);
  EXPECT_EQ(schedule.Rate(1000, kPlanned), 0.015625);
  EXPECT_EQ(schedule.Rate(4000, kPlanned), 0.015625);
}

TEST(ScheduleTest, StepWithoutPointsIsConstant) {
  EXPECT_EQ(Made({.name = "step", .learning_rate = 0.5}).Rate(1000, kPlanned), 0.5);
}

TEST(ScheduleTest, PolynomialFallsToZero) {
  const Schedule line = Made({.name = "polynomial", .learning_rate = 2});
  EXPECT_EQ(line.Rate(0, kPlanned), 2);
  EXPECT_DOUBLE_EQ(line.Rate(250, kPlanned), 1.5);
  EXPECT_EQ(line.Rate(1000, kPlanned), 0);
  EXPECT_EQ(line.Rate(1001, kPlanned), 0);
  const Schedule square = Made({.name = "polynomial", .learning_rate = 2, .power = 2});
  EXPECT_DOUBLE_EQ(square.Rate(500, kPlanned), 0.5);
  const Schedule crooked = Made({.name = "polynomial", .learning_rate = 2, .power = 0.9});
  EXPECT_DOUBLE_EQ(crooked.Rate(500, kPlanned), 2 * std::pow(0.5, 0.9));
}

TEST(ScheduleTest, CosineFallsToZeroThroughTheHalf) {
  const Schedule schedule = Made({.name = "cosine", .learning_rate = 2});
  EXPECT_EQ(schedule.Rate(0, kPlanned), 2);
  EXPECT_DOUBLE_EQ(schedule.Rate(250, kPlanned), 1 + std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(schedule.Rate(500, kPlanned), 1);
  EXPECT_EQ(schedule.Rate(1000, kPlanned), 0);
  EXPECT_EQ(schedule.Rate(9999, kPlanned), 0);
}

TEST(ScheduleTest, WithoutAPlanItStaysAtTheStart) {
  for (const char* name : {"constant", "step", "polynomial", "cosine"}) {
    const Schedule schedule =
        Made({.name = name, .learning_rate = 0.5, .warmup = 0.5, .decay_at = {0.1}});
    EXPECT_EQ(schedule.Rate(0, 0), 0.5) << name;
    EXPECT_EQ(schedule.Rate(123456789, 0), 0.5) << name;
  }
}

TEST(ScheduleTest, MakeNamesTheFieldAndWhatItWants) {
  EXPECT_EQ(Error({.name = "cosin"}),
            absl::InvalidArgumentError("schedule: want constant, step, polynomial or cosine, got "
                                       "\"cosin\"; did you mean cosine?"));
  EXPECT_EQ(Error({.warmup = 1.5}),
            absl::InvalidArgumentError("warmup: want a number from 0 to 1, got 1.5"));
  EXPECT_EQ(Error({.decay_at = {0.5, -2}}),
            absl::InvalidArgumentError("decay_at: want a number from 0 to 1, got -2"));
  EXPECT_EQ(Error({.decay_factor = 2}),
            absl::InvalidArgumentError("decay_factor: want a number from 0 to 1, got 2"));
  EXPECT_EQ(Error({.power = std::nan("")}),
            absl::InvalidArgumentError("power: want a number from 0 to 1e+06, got nan"));
  EXPECT_EQ(
      Error({.learning_rate = -1}),
      absl::InvalidArgumentError("learning_rate: want a number from 0 to 3.40282e+38, got -1"));
}

}  // namespace
}  // namespace thinwire
