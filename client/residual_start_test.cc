#include "client/residual_start.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire::client {
namespace {

// Two servers' replies, one shard each.
std::vector<JoinReply> Replies(uint64_t predecessor_next, uint64_t other_next) {
  std::vector<JoinReply> replies(2);
  replies[0].add_shards()->set_predecessor_next(predecessor_next);
  replies[1].add_shards()->set_predecessor_next(other_next);
  return replies;
}

TEST(ResidualStartTest, AFirstProcessWithoutAFileHasNothingToSay) {
  const ResidualStart start = StartResiduals("", std::nullopt, Replies(0, 0), Step{0});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text, "");
}

TEST(ResidualStartTest, ALaterProcessWithoutAFileSaysWhatIsLost) {
  EXPECT_EQ(StartResiduals("", std::nullopt, Replies(0, 7), Step{9}).text,
            "no residual file; what an earlier process of this worker still owed is lost");
  EXPECT_EQ(StartResiduals("r", std::nullopt, Replies(7, 7), Step{9}).text,
            "r: no file yet; what an earlier process of this worker still owed is lost");
}

TEST(ResidualStartTest, AFileThatIsNotThereYetIsSaid) {
  const ResidualStart start = StartResiduals("r", std::nullopt, Replies(0, 0), Step{0});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text, "r: no file yet");
}

TEST(ResidualStartTest, WhatWasSavedLastIsRestoredHoweverFarTheOthersCame) {
  for (const uint64_t first : {41, 60}) {
    const ResidualStart start = StartResiduals("r", Step{41}, Replies(41, 40), Step{first});
    EXPECT_TRUE(start.restore);
    EXPECT_EQ(start.text, "r: saved before step 41, restored");
  }
}

// What the file holds was partly sent since: it would count twice.
TEST(ResidualStartTest, AFileThatPushesCameAfterIsNotRestored) {
  const ResidualStart start = StartResiduals("r", Step{41}, Replies(41, 42), Step{60});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text,
            "r: saved before step 41, and pushed up to step 42 since; what an earlier process of "
            "this worker still owed is lost");
}

TEST(ResidualStartTest, AFileOfAnotherRunIsNotRestored) {
  const ResidualStart start = StartResiduals("r", Step{41}, Replies(0, 0), Step{0});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text,
            "r: saved before step 41, and the job is at step 0: of another run, not restored");
}

}  // namespace
}  // namespace thinwire::client
