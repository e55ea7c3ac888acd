#include "common/spec/staleness_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

namespace thinwire {
namespace {

std::string Error(const StalenessSpec& spec) {
  return std::string(spec.Validate().ToStatus().message());
}

std::string Printed(const StalenessSpec& spec) {
  std::ostringstream out;
  out << spec;
  return out.str();
}

TEST(StalenessSpecTest, TheDefaultsAreValid) { EXPECT_EQ(Error({}), ""); }

TEST(StalenessSpecTest, DropNeedsABound) {
  EXPECT_EQ(Error({.policy = StalenessPolicy::kDrop}),
            "staleness_policy: drop requires a staleness_bound (expected at least 1, got 0)");
  EXPECT_EQ(Error({.policy = StalenessPolicy::kDrop, .bound = 1}), "");
}

TEST(StalenessSpecTest, LambdaIsAFloatThatIsNotNegative) {
  EXPECT_EQ(Error({.policy = StalenessPolicy::kDcasgd, .lambda = 0}), "");
  EXPECT_EQ(Error({.policy = StalenessPolicy::kDcasgd, .lambda = -1}),
            "dcasgd_lambda: out of range (expected 0 to 3.4e38, the largest float, got -1)");
  EXPECT_NE(Error({.policy = StalenessPolicy::kDcasgd, .lambda = std::nan("")}), "");
}

TEST(StalenessSpecTest, ADecayIsBelowOne) {
  EXPECT_EQ(Error({.policy = StalenessPolicy::kDcasgd, .decay = 0.95}), "");
  EXPECT_EQ(Error({.policy = StalenessPolicy::kDcasgd, .decay = 1}),
            "dcasgd_decay: out of range (expected at least 0 and below 1, got 1)");
  EXPECT_NE(Error({.policy = StalenessPolicy::kDcasgd, .decay = -0.5}), "");
  EXPECT_NE(Error({.policy = StalenessPolicy::kDcasgd, .decay = std::nan("")}), "");
}

TEST(StalenessSpecTest, PrintsTheSettingsOfItsPolicy) {
  EXPECT_EQ(Printed({}), "staleness policy none");
  EXPECT_EQ(Printed({.policy = StalenessPolicy::kDrop, .bound = 7}),
            "staleness policy drop above 7");
  EXPECT_EQ(Printed({.policy = StalenessPolicy::kScale}), "staleness policy scale");
  EXPECT_EQ(Printed({.policy = StalenessPolicy::kDcasgd, .lambda = 0.5}),
            "staleness policy dcasgd with lambda 0.5");
  EXPECT_EQ(Printed({.policy = StalenessPolicy::kDcasgd, .lambda = 0.5, .decay = 0.75}),
            "staleness policy dcasgd with lambda 0.5 and decay 0.75");
}

}  // namespace
}  // namespace thinwire
