#include "common/spec/schedule_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

namespace thinwire {
namespace {

std::string Error(const ScheduleSpec& spec) {
  return std::string(spec.Validate().ToStatus().message());
}

TEST(ScheduleSpecTest, TheDefaultsAreValid) { EXPECT_EQ(Error({}), ""); }

TEST(ScheduleSpecTest, EveryNumberOutsideItsRangeIsAProblem) {
  EXPECT_EQ(Error({.warmup = 1.5}), "warmup: out of range (expected 0 to 1, got 1.5)");
  EXPECT_EQ(Error({.decay_at = {0.5, 2}}), "decay_at[1]: out of range (expected 0 to 1, got 2)");
  EXPECT_EQ(Error({.decay_factor = 2}), "decay_factor: out of range (expected 0 to 1, got 2)");
  EXPECT_EQ(Error({.power = std::nan("")}), "power: out of range (expected 0 to 1000000, got nan)");
  EXPECT_EQ(Error({.learning_rate = -1}),
            "learning_rate: out of range (expected 0 to 3.4e38, the largest float, got -1)");
  EXPECT_EQ(Error({.growth = {.ratio = 0}}),
            "growth_ratio: out of range (expected 1.2e-38 to 3.4e38, the range of a positive "
            "float, got 0)");
  EXPECT_NE(Error({.growth = {.ratio = HUGE_VAL}}), "");
}

TEST(ScheduleSpecTest, DecayPointsRise) {
  EXPECT_EQ(Error({.decay_at = {0.5, 0.5, 1}}), "");
  EXPECT_EQ(Error({.decay_at = {0.75, 0.5}}),
            "decay_at[1]: out of order (expected at least 0.75, the entry before, got 0.5)");
}

TEST(ScheduleSpecTest, PrintsTheSettingsThatItsFormulaReads) {
  std::ostringstream out;
  out << ScheduleSpec{.kind = ScheduleKind::kStep, .learning_rate = 0.5, .decay_at = {0.25}};
  EXPECT_EQ(out.str(), "step learning_rate 0.5 warmup 0 decay_at 0.25 decay_factor 0.1");
  std::ostringstream grows;
  grows << ScheduleSpec{.kind = ScheduleKind::kNoiseScale,
                        .growth = {.largest_batch = 512, .ratio = 4}};
  EXPECT_EQ(grows.str(),
            "noise_scale learning_rate 0.01 warmup 0 largest_batch 512 growth_ratio 4");
}

}  // namespace
}  // namespace thinwire
