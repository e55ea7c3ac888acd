#include "server/core/rule.h"

#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

std::string Printed(const Rule& rule) {
  std::ostringstream out;
  out << rule;
  return out.str();
}

TEST(RuleTest, RowsHaveTheQuorumAndTheSlackOfTheirMode) {
  EXPECT_EQ(Rule::Sync(4).quorum, 4u);
  EXPECT_EQ(Rule::Backup(4, 1).quorum, 3u);
  EXPECT_EQ(Rule::Sync(4).slack, 0u);
  EXPECT_EQ(Rule::Ssp(4, 2).slack, 2u);
  EXPECT_EQ(Rule::Async(4).slack, kUnboundedSlack);
  EXPECT_EQ(Rule::Backup(4, 0), Rule::Sync(4));
}

TEST(RuleTest, AnUpdateIsOfOneGradientPerWorkerOrOfAsManyAsItFolds) {
  EXPECT_EQ(Rule::Sync(4).MostFolded(), 4u);
  EXPECT_EQ(Rule::Backup(4, 1).MostFolded(), 4u);
  EXPECT_EQ(Rule::Ssp(4, 2, 3).MostFolded(), 3u);
  EXPECT_EQ(Rule::Async(4).MostFolded(), 1u);
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
