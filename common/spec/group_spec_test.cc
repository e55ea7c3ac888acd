#include "common/spec/group_spec.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace thinwire {
namespace {

std::string Error(const GroupSpec& group, const ScheduleSpec& schedule = {}) {
  return std::string(
      group.Validate("parameter_group[2]", OptimizerSpec(), schedule).ToStatus().message());
}

TEST(GroupSpecTest, EveryNumberOutsideItsRangeIsAProblemAtItsPlace) {
  EXPECT_EQ(Error({.match = "*.bias"}), "");
  EXPECT_EQ(Error({.match = "*.bias", .learning_rate_factor = 0}), "");
  EXPECT_EQ(Error({}),
            "parameter_group[2].match: no pattern (expected one such as \"*.bias\", got \"\")");
  EXPECT_EQ(Error({.match = "b", .learning_rate_factor = -1}),
            "parameter_group[2].learning_rate_factor: out of range (expected 0 to 3.4e38, the "
            "largest float, got -1)");
  EXPECT_EQ(Error({.match = "b", .learning_rate_factor = 1e38}, {.learning_rate = 10}),
            "parameter_group[2].learning_rate_factor: out of range (expected 0 to 3.4e38, the "
            "largest float, got 1e+39)");
  EXPECT_EQ(Error({.match = "b", .optimizer = {.weight_decay = -1}}),
            "parameter_group[2].weight_decay: out of range (expected 0 to 3.4e38, the largest "
            "float, got -1)");
  EXPECT_NE(Error({.match = "b", .push = CodecSpec{.id = CodecId::kTopK, .density = 2}}), "");
}

TEST(GroupSpecTest, TheFactorMultipliesTheJobsLearningRate) {
  const GroupSpec group = {.match = "b", .learning_rate_factor = 0.5};
  const ScheduleSpec schedule = group.ScheduleOf({.learning_rate = 0.25, .warmup = 0.1});
  EXPECT_EQ(schedule, (ScheduleSpec{.learning_rate = 0.125, .warmup = 0.1}));
}

TEST(GroupSpecTest, PrintsItsSettings) {
  std::ostringstream out;
  out << GroupSpec{.match = "*.bias", .push = CodecSpec{.id = CodecId::kBf16}};
  EXPECT_EQ(out.str().find("*.bias: learning_rate_factor 1, sgd weight_decay 0, push bf16"), 0u)
      << out.str();
}

}  // namespace
}  // namespace thinwire
