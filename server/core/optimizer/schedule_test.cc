#include "server/core/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/status/status.h"

namespace thinwire {
namespace {

constexpr uint64_t kPlanned = 1000;
constexpr ScheduleKind kEveryKind[] = {ScheduleKind::kConstant, ScheduleKind::kStep,
                                       ScheduleKind::kPolynomial, ScheduleKind::kCosine};

Schedule Made(const ScheduleSpec& spec) { return std::move(Schedule::Make(spec)).value(); }
absl::Status Error(const ScheduleSpec& spec) { return Schedule::Make(spec).status(); }

TEST(ScheduleTest, ConstantNeverChanges) {
  const Schedule schedule = Made({.learning_rate = 0.5});
  for (uint64_t examples : {0, 1, 500, 1000, 5000}) {
    EXPECT_EQ(schedule.Rate(examples, kPlanned), 0.5);
  }
}

TEST(ScheduleTest, WarmUpRisesFromZeroAndEndsWithoutAJump) {
  for (ScheduleKind kind : kEveryKind) {
    SCOPED_TRACE(kind);
    const Schedule schedule = Made({.kind = kind, .learning_rate = 0.5, .warmup = 0.1});
    const Schedule cold = Made({.kind = kind, .learning_rate = 0.5});
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
  const Schedule schedule = Made({.kind = ScheduleKind::kStep,
                                  .learning_rate = 1,
                                  .decay_at = {0.5, 0.75, 1},
                                  .decay_factor = 0.25});
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
  EXPECT_EQ(Made({.kind = ScheduleKind::kStep, .learning_rate = 0.5}).Rate(1000, kPlanned), 0.5);
}

TEST(ScheduleTest, PolynomialFallsToZero) {
  const Schedule line = Made({.kind = ScheduleKind::kPolynomial, .learning_rate = 2});
  EXPECT_EQ(line.Rate(0, kPlanned), 2);
  EXPECT_DOUBLE_EQ(line.Rate(250, kPlanned), 1.5);
  EXPECT_EQ(line.Rate(1000, kPlanned), 0);
  EXPECT_EQ(line.Rate(1001, kPlanned), 0);
  const Schedule square = Made({.kind = ScheduleKind::kPolynomial, .learning_rate = 2, .power = 2});
  EXPECT_DOUBLE_EQ(square.Rate(500, kPlanned), 0.5);
  const Schedule crooked =
      Made({.kind = ScheduleKind::kPolynomial, .learning_rate = 2, .power = 0.9});
  EXPECT_DOUBLE_EQ(crooked.Rate(500, kPlanned), 2 * std::pow(0.5, 0.9));
}

TEST(ScheduleTest, CosineFallsToZeroThroughTheHalf) {
  const Schedule schedule = Made({.kind = ScheduleKind::kCosine, .learning_rate = 2});
  EXPECT_EQ(schedule.Rate(0, kPlanned), 2);
  EXPECT_DOUBLE_EQ(schedule.Rate(250, kPlanned), 1 + std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(schedule.Rate(500, kPlanned), 1);
  EXPECT_EQ(schedule.Rate(1000, kPlanned), 0);
  EXPECT_EQ(schedule.Rate(9999, kPlanned), 0);
}

TEST(ScheduleTest, WithoutAPlanItStaysAtTheStart) {
  for (ScheduleKind kind : kEveryKind) {
    const Schedule schedule =
        Made({.kind = kind, .learning_rate = 0.5, .warmup = 0.5, .decay_at = {0.1}});
    EXPECT_EQ(schedule.Rate(0, 0), 0.5) << kind;
    EXPECT_EQ(schedule.Rate(123456789, 0), 0.5) << kind;
  }
}

TEST(ScheduleTest, MakeReportsEveryProblemOfTheSpec) {
  EXPECT_EQ(Error({.warmup = 1.5, .decay_at = {0.5, 0.25}}),
            absl::InvalidArgumentError(
                "warmup: out of range (expected 0 to 1, got 1.5)\n"
                "decay_at[1]: out of order (expected at least 0.5, the entry before, got 0.25)"));
}

}  // namespace
}  // namespace thinwire
