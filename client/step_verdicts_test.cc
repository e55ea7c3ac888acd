#include "client/step_verdicts.h"

#include <gtest/gtest.h>

namespace thinwire::client {
namespace {

TEST(StepVerdictsTest, AStepThatWasInTimeIsFollowedByTheNextWhateverTheFrontier) {
  StepVerdicts verdicts;
  verdicts.Begin(Step{4}, 2);
  EXPECT_FALSE(verdicts.complete());
  verdicts.Add(false, Step{4});
  EXPECT_FALSE(verdicts.complete());
  verdicts.Add(false, Step{9});
  ASSERT_TRUE(verdicts.complete());
  EXPECT_EQ(verdicts.next(), Step{5});
}

TEST(StepVerdictsTest, LateAnywhereJumpsToTheLargestFrontierOfAllVerdicts) {
  StepVerdicts verdicts;
  verdicts.Begin(Step{4}, 3);
  verdicts.Add(true, Step{6});
  verdicts.Add(false, Step{9});
  verdicts.Add(false, Step{4});
  EXPECT_EQ(verdicts.next(), Step{9});
}

TEST(StepVerdictsTest, ALateStepStillMovesForwardByOne) {
  StepVerdicts verdicts;
  verdicts.Begin(Step{4}, 1);
  verdicts.Add(true, Step{2});
  EXPECT_EQ(verdicts.next(), Step{5});
}

TEST(StepVerdictsTest, BeginForgetsTheStepBefore) {
  StepVerdicts verdicts;
  verdicts.Begin(Step{4}, 1);
  verdicts.Add(true, Step{9});
  verdicts.Begin(Step{9}, 1);
  EXPECT_FALSE(verdicts.complete());
  verdicts.Add(false, Step{9});
  EXPECT_EQ(verdicts.next(), Step{10});
}

}  // namespace
}  // namespace thinwire::client
