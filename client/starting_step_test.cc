#include "client/starting_step.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire::client {
namespace {

struct State {
  bool open = false;
  uint64_t frontier = 0;
  uint64_t predecessor_next = 0;
  uint64_t largest_next = 0;
};

JoinReply Reply(bool by_round, std::vector<State> shards) {
  JoinReply reply;
  reply.set_by_round(by_round);
  for (const State& s : shards) {
    ShardState* shard = reply.add_shards();
    shard->set_open(s.open);
    shard->set_frontier(s.frontier);
    shard->set_predecessor_next(s.predecessor_next);
    shard->set_largest_next(s.largest_next);
  }
  return reply;
}

TEST(StartingStepTest, ANewJobBeginsAtZero) {
  const std::vector<JoinReply> replies = {Reply(true, {{}, {}}), Reply(true, {})};
  EXPECT_EQ(StartingStep(replies), Step{0});
}

TEST(StartingStepTest, ARestoredShutJobBeginsAtItsFrontier) {
  const std::vector<JoinReply> replies = {Reply(true, {{.frontier = 7}, {.frontier = 7}})};
  EXPECT_EQ(StartingStep(replies), Step{7});
}

TEST(StartingStepTest, AnOpenRoundIsLeftToThoseWhoAreInIt) {
  const std::vector<JoinReply> replies = {Reply(true, {{.open = true, .frontier = 4}}),
                                          Reply(true, {{.open = false, .frontier = 6}})};
  EXPECT_EQ(StartingStep(replies), Step{7});
}

TEST(StartingStepTest, WithoutRoundsTheFrontierItselfWillDo) {
  const std::vector<JoinReply> replies = {Reply(false, {{.open = true, .frontier = 4}})};
  EXPECT_EQ(StartingStep(replies), Step{4});
}

TEST(StartingStepTest, WhatThePredecessorFinishedIsNotDoneAgain) {
  const std::vector<JoinReply> replies = {
      Reply(true, {{.open = true, .frontier = 4, .predecessor_next = 9}})};
  EXPECT_EQ(StartingStep(replies), Step{9});
}

TEST(StartingStepTest, ANewcomerStartsBehindNobody) {
  const std::vector<JoinReply> replies = {
      Reply(false, {{.open = true, .frontier = 4, .largest_next = 6}})};
  EXPECT_EQ(StartingStep(replies), Step{6});
}

}  // namespace
}  // namespace thinwire::client
