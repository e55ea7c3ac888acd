#include "config/stability.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

JobConfig Parsed(const std::string& text) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::vector<std::string> WarningsOf(const std::string& text) {
  std::vector<std::string> lines;
  const Problems warnings = StabilityWarnings(Parsed(text));
  for (const Problem& warning : warnings.list()) {
    lines.push_back(warning.field + ": " + warning.text);
  }
  return lines;
}

const std::string kMomentum = "optimization { optimizer: momentum learning_rate: 0.06 } ";
const std::string kSsp = "consistency { mode: ssp workers: 4 slack: 4 } ";
const std::string kRandomK = "compression { push: randomk density: 0.05 } ";

TEST(StabilityTest, TheDefaultsAreStable) { EXPECT_THAT(WarningsOf(""), IsEmpty()); }

TEST(StabilityTest, HighMomentumUnderStalenessGetsAWarning) {
  EXPECT_THAT(
      WarningsOf(kSsp + kMomentum),
      ElementsAre(
          "momentum: may diverge in mode ssp with 4 workers and learning_rate 0.06, because "
          "staleness acts as momentum (expected at most 0.5, or a learning_rate below "
          "0.0175, got 0.9)"));
  EXPECT_THAT(WarningsOf("consistency { mode: async workers: 4 } " + kMomentum),
              ElementsAre(HasSubstr("in mode async")));
  EXPECT_THAT(WarningsOf(kSsp + "optimization { learning_rate: 0.06 } "
                                "compression { momentum_correction: true }"),
              ElementsAre(HasSubstr("correction_momentum: may diverge")));
}

TEST(StabilityTest, MomentumWithoutStalenessOrWithASmallRateIsStable) {
  EXPECT_THAT(WarningsOf("consistency { mode: sync workers: 4 } " + kMomentum), IsEmpty());
  EXPECT_THAT(WarningsOf("consistency { mode: ssp workers: 1 } " + kMomentum), IsEmpty());
  EXPECT_THAT(WarningsOf(kSsp + "optimization { optimizer: momentum learning_rate: 0.015 }"),
              IsEmpty());
  EXPECT_THAT(
      WarningsOf(kSsp + "optimization { optimizer: momentum learning_rate: 0.06 momentum: 0.5 }"),
      IsEmpty());
  EXPECT_THAT(WarningsOf(kSsp + "optimization { optimizer: adam learning_rate: 0.06 }"), IsEmpty());
}

TEST(StabilityTest, HighMomentumWithFewRandomValuesGetsAWarning) {
  EXPECT_THAT(WarningsOf(kRandomK + kMomentum),
              ElementsAre(HasSubstr("momentum: may diverge with push randomk and density 0.05")));
  EXPECT_THAT(WarningsOf("compression { push: randomk density: 0.2 } " + kMomentum), IsEmpty());
  EXPECT_THAT(WarningsOf("compression { push: topk density: 0.05 } " + kMomentum), IsEmpty());
  EXPECT_THAT(WarningsOf(kRandomK + "optimization { optimizer: momentum lazy_slots: true }"),
              IsEmpty());
  EXPECT_THAT(WarningsOf(kRandomK), IsEmpty()) << "sgd has no momentum";
}

TEST(StabilityTest, TheAdviceFitsTheJob) {
  EXPECT_EQ(DivergenceAdvice(Parsed("")), "a lower learning_rate, gradient_clip: 1");
  EXPECT_EQ(DivergenceAdvice(Parsed(kSsp + kMomentum + "compression { gradient_clip: 1 }")),
            "a lower learning_rate, a lower momentum (0.5 or 0, because staleness acts as "
            "momentum)");
  EXPECT_THAT(DivergenceAdvice(Parsed(kRandomK + kMomentum)), HasSubstr("lazy_slots"));
  EXPECT_THAT(DivergenceAdvice(Parsed(kRandomK)), Not(HasSubstr("momentum")));
  EXPECT_THAT(DivergenceAdvice(Parsed("compression { push: qsgd error_feedback: false }")),
              HasSubstr("error_feedback: true"));
}

}  // namespace
}  // namespace thinwire
