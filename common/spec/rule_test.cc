#include "common/spec/rule.h"

#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

std::string Printed(const Rule& rule) {
  std::ostringstream out;
  out << rule;
  return out.str();
}

TEST(RuleTest, EachModeSetsItsQuorumAndSlack) {
  EXPECT_EQ(Rule::Sync(4).quorum, 4u);
  EXPECT_EQ(Rule::Backup(4, 1).quorum, 3u);
  EXPECT_EQ(Rule::Sync(4).slack, 0u);
  EXPECT_EQ(Rule::Ssp(4, 2).slack, 2u);
  EXPECT_EQ(Rule::Async(4).slack, kUnboundedSlack);
  EXPECT_EQ(Rule::Backup(4, 0), Rule::Sync(4));
}

TEST(RuleTest, AnUpdateHoldsOneGradientPerWorkerOrFoldEveryGradients) {
  EXPECT_EQ(Rule::Sync(4).MostFolded(), 4u);
  EXPECT_EQ(Rule::Backup(4, 1).MostFolded(), 4u);
  EXPECT_EQ(Rule::Ssp(4, 2, 3).MostFolded(), 3u);
  EXPECT_EQ(Rule::Async(4).MostFolded(), 1u);
}

TEST(RuleTest, EachModeHasItsName) {
  EXPECT_EQ(Rule::Sync(4).mode(), "sync");
  EXPECT_EQ(Rule::Backup(4, 1).mode(), "backup");
  EXPECT_EQ(Rule::Ssp(4, 2).mode(), "ssp");
  EXPECT_EQ(Rule::Async(4).mode(), "async");
}

TEST(RuleTest, EachModeIsValidInItsRange) {
  for (const Rule& rule :
       {Rule::Sync(1), Rule::Backup(4, 3), Rule::Ssp(4, 0), Rule::Async(65536)}) {
    EXPECT_EQ(rule.Validate().ToStatus(), absl::OkStatus()) << rule;
  }
}

TEST(RuleTest, EveryNumberOutsideItsRangeIsAProblem) {
  const auto error = [](const Rule& rule) {
    return std::string(rule.Validate().ToStatus().message());
  };
  EXPECT_EQ(error(Rule::Async(0)), "workers: out of range (expected 1 to 65536, got 0)");
  EXPECT_EQ(error(Rule::Async(65537)), "workers: out of range (expected 1 to 65536, got 65537)");
  Rule small = Rule::Async(3);
  small.max_workers = 2;
  EXPECT_EQ(error(small), "max_workers: out of range (expected 3 to 65536, got 2)");
  EXPECT_EQ(error(Rule::Ssp(1, 0, 0)), "fold_every: out of range (expected at least 1, got 0)");
  EXPECT_EQ(error(Rule::Backup(4, 4)),
            "backup: out of range (expected below 4, the value of workers, got 4)");
  EXPECT_EQ(error(Rule::Backup(4, 9)),
            "backup: out of range (expected below 4, the value of workers, got 9)");
}

TEST(RuleTest, PrintsItsRow) {
  EXPECT_EQ(Printed(Rule::Sync(4)), "sync of 4");
  EXPECT_EQ(Printed(Rule::Sync(4, true)), "sync of 4, ordered");
  EXPECT_EQ(Printed(Rule::Backup(4, 1)), "backup 3+1");
  EXPECT_EQ(Printed(Rule::Ssp(4, 2, 3)), "ssp(2) of 4, fold_every 3");
  EXPECT_EQ(Printed(Rule::Async(4)), "async of 4, fold_every 1");
}

}  // namespace
}  // namespace thinwire
