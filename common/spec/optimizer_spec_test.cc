#include "common/spec/optimizer_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

namespace thinwire {
namespace {

std::string Error(const OptimizerSpec& spec) {
  return std::string(spec.Validate().ToStatus().message());
}

std::string Printed(const OptimizerSpec& spec) {
  std::ostringstream out;
  out << spec;
  return out.str();
}

TEST(OptimizerSpecTest, TheDefaultsAreValid) { EXPECT_EQ(Error({}), ""); }

TEST(OptimizerSpecTest, EveryNumberOutsideItsRangeIsAProblem) {
  EXPECT_EQ(Error({.momentum = 1}),
            "momentum: out of range (expected at least 0 and below 1, got 1)");
  EXPECT_EQ(Error({.beta1 = -0.5}),
            "beta1: out of range (expected at least 0 and below 1, got -0.5)");
  EXPECT_EQ(Error({.beta2 = std::nan("")}),
            "beta2: out of range (expected at least 0 and below 1, got nan)");
  EXPECT_EQ(
      Error({.epsilon = 0}),
      "epsilon: out of range (expected 1.2e-38 to 3.4e38, the range of a positive float, got 0)");
  EXPECT_EQ(Error({.weight_decay = -1}),
            "weight_decay: out of range (expected 0 to 3.4e38, the largest float, got -1)");
  EXPECT_EQ(Error({.trust_coefficient = 0}),
            "trust_coefficient: out of range (expected 1.2e-38 to 3.4e38, the range of a positive "
            "float, got 0)");
  EXPECT_EQ(Error({.parameter_average = 1}),
            "parameter_average: out of range (expected at least 0 and below 1, got 1)");
  for (const double decay : {-0.1, 2.0, std::nan("")}) {
    EXPECT_NE(Error({.parameter_average = decay}), "") << decay;
  }
}

TEST(OptimizerSpecTest, NumbersBeyondAFloatAreProblems) {
  EXPECT_NE(Error({.epsilon = 1e-50}), "");
  EXPECT_NE(Error({.epsilon = std::numeric_limits<double>::infinity()}), "");
  EXPECT_NE(Error({.weight_decay = 1e39}), "");
}

TEST(OptimizerSpecTest, TheEdgesOfTheRangesAreValid) {
  EXPECT_EQ(Error({.kind = OptimizerKind::kNesterov, .momentum = 0}), "");
  EXPECT_EQ(Error({.kind = OptimizerKind::kAdam, .beta1 = 0, .beta2 = 0}), "");
}

TEST(OptimizerSpecTest, PrintsTheSettingsThatItsFormulaReads) {
  EXPECT_EQ(Printed({}), "sgd weight_decay 0");
  EXPECT_EQ(Printed({.kind = OptimizerKind::kNesterov, .momentum = 0.5}),
            "nesterov momentum 0.5 weight_decay 0");
  EXPECT_EQ(Printed({.kind = OptimizerKind::kAdamW, .weight_decay = 0.25}),
            "adamw beta1 0.9 beta2 0.999 epsilon 1e-08 weight_decay 0.25");
  EXPECT_EQ(Printed({.kind = OptimizerKind::kLars}),
            "lars momentum 0.9 trust_coefficient 0.001 weight_decay 0");
  EXPECT_EQ(Printed({.kind = OptimizerKind::kLion, .beta2 = 0.99}),
            "lion beta1 0.9 beta2 0.99 weight_decay 0");
  EXPECT_EQ(Printed({.parameter_average = 0.999}), "sgd weight_decay 0 parameter_average 0.999");
}

}  // namespace
}  // namespace thinwire
