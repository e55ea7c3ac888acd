#include "server/durable/rule_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

constexpr char kFolder[] = "state";

SetModeRequest Slack(uint32_t slack) {
  SetModeRequest request;
  request.set_run(9);
  request.mutable_consistency()->set_slack(slack);
  return request;
}

class RuleFileTest : public testing::Test {
 protected:
  RuleFileTest() {
    EXPECT_TRUE(files_.MakeFolder(kFolder).ok());
    EXPECT_TRUE(files_.SyncFolder("/").ok());
  }

  FaultyFiles files_;
};

TEST_F(RuleFileTest, TheNewestRuleSurvivesALossOfPower) {
  EXPECT_EQ(ReadRule(files_, kFolder, RunId{9}).value(), std::nullopt);
  for (const uint32_t slack : {3, 4}) {
    ASSERT_TRUE(WriteRule(files_, kFolder, Slack(slack)).ok());
    files_.Crash();
    files_.Restart();
    EXPECT_EQ(ReadRule(files_, kFolder, RunId{9}).value()->consistency().slack(), slack);
  }
}

TEST_F(RuleFileTest, TheRuleOfAnotherRunIsIgnored) {
  ASSERT_TRUE(WriteRule(files_, kFolder, Slack(3)).ok());
  EXPECT_EQ(ReadRule(files_, kFolder, RunId{8}).value(), std::nullopt);
}

TEST_F(RuleFileTest, ADamagedFileIsNamed) {
  ASSERT_TRUE(WriteRule(files_, kFolder, Slack(3)).ok());
  files_.SetBytes("state/rule", std::vector<std::byte>(5, std::byte{0xff}));
  EXPECT_EQ(ReadRule(files_, kFolder, RunId{9}).status(),
            absl::DataLossError("state/rule: not a consistency rule"));
}

}  // namespace
}  // namespace thinwire
