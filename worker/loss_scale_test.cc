#include "worker/loss_scale.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(LossScaleTest, HalvesAtEveryOverflowDownToOne) {
  LossScale scale({.first = 4});
  scale.Overflowed();
  EXPECT_EQ(scale.value(), 2);
  scale.Overflowed();
  EXPECT_EQ(scale.value(), 1);
  scale.Overflowed();
  EXPECT_EQ(scale.value(), 1);
  EXPECT_EQ(scale.overflow_count(), 3u);
}

TEST(LossScaleTest, DoublesAfterAnIntervalOfGoodStepsUpToTheLargest) {
  LossScale scale({.first = 1, .interval = 3, .largest = 4});
  for (const float want : {1, 1, 2, 2, 2, 4, 4, 4, 4}) {
    scale.Good();
    EXPECT_EQ(scale.value(), want);
  }
}

TEST(LossScaleTest, AnOverflowBeginsTheIntervalAnew) {
  LossScale scale({.first = 8, .interval = 3});
  scale.Good();
  scale.Good();
  scale.Overflowed();
  EXPECT_EQ(scale.state(), (LossScale::State{.value = 4, .good_steps = 0}));
  scale.Good();
  scale.Good();
  EXPECT_EQ(scale.value(), 4);
  scale.Good();
  EXPECT_EQ(scale.value(), 8);
}

TEST(LossScaleTest, TheNextProcessGoesOnWhereThisOneEnded) {
  LossScale scale({.first = 8, .interval = 3});
  scale.Overflowed();
  scale.Good();
  scale.Good();
  LossScale next({.first = 65536, .interval = 3});
  next.Restore(scale.state());
  EXPECT_EQ(next.value(), 4);
  EXPECT_EQ(next.overflow_count(), 0u) << "a count is of one process";
  next.Good();
  EXPECT_EQ(next.value(), 8);
}

TEST(LossScaleTest, WhatIsRestoredKeepsWithinTheBounds) {
  LossScale scale({.first = 8, .interval = 3, .largest = 16});
  scale.Restore({.value = 1024, .good_steps = 7});
  EXPECT_EQ(scale.value(), 16);
  scale.Good();
  EXPECT_EQ(scale.state(), (LossScale::State{.value = 16, .good_steps = 0}));
}

}  // namespace
}  // namespace thinwire
