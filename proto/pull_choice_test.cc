#include "proto/pull_choice.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(PullChoiceTest, AnUnderscoreTellsTheCodecOfDeltas) {
  EXPECT_EQ(ParsePull("bf16"), (PullChoice{.deltas = false, .codec = "bf16"}));
  EXPECT_EQ(ParsePull("delta"), (PullChoice{.deltas = true, .codec = ""}));
  EXPECT_EQ(ParsePull("delta_fp8_e5m2"), (PullChoice{.deltas = true, .codec = "fp8_e5m2"}));
  EXPECT_EQ(ParsePull("delta_"), (PullChoice{.deltas = true, .codec = ""}));
  EXPECT_EQ(ParsePull("deltas"), (PullChoice{.deltas = false, .codec = "deltas"}));
}

}  // namespace
}  // namespace thinwire
