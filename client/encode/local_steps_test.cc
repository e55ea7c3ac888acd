#include "client/encode/local_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace thinwire::client {
namespace {

using ::testing::ElementsAre;

const std::vector<TensorShape> kTensors = {{"w", {2, 1}}, {"b", {1}}};

// The values of two tensors.
struct Values {
  std::vector<float> w, b;

  std::vector<std::span<float>> spans() { return {w, b}; }
  bool operator==(const Values&) const = default;
};

TEST(LocalStepsTest, TheDifferenceOfSgdIsTheRateTimesTheSumOfTheGradients) {
  LocalSteps local({.count = 3, .learning_rate = 0.5}, kTensors);
  Values x = {{1, 2}, {-4}};
  const Values start = x;
  local.Begin(x.spans());
  Values gradient = {{2, 0}, {1}};
  EXPECT_TRUE(local.Apply(x.spans(), gradient.spans()));
  EXPECT_EQ(x, (Values{{0, 2}, {-4.5}}));
  gradient = {{4, -2}, {1}};
  EXPECT_TRUE(local.Apply(x.spans(), gradient.spans()));
  EXPECT_EQ(x, (Values{{-2, 3}, {-5}}));
  local.Finish(x.spans(), gradient.spans());
  EXPECT_EQ(gradient, (Values{{3, -1}, {1}}));
  EXPECT_EQ(x, start);
}

TEST(LocalStepsTest, SgdAddsTheWeightDecayToTheGradient) {
  LocalSteps local({.count = 2, .learning_rate = 0.5, .weight_decay = 0.25}, kTensors);
  Values x = {{8, 0}, {0}};
  local.Begin(x.spans());
  Values gradient = {{1, 1}, {0}};
  EXPECT_TRUE(local.Apply(x.spans(), gradient.spans()));
  EXPECT_EQ(x, (Values{{6.5, -0.5}, {0}}));
}

TEST(LocalStepsTest, MomentumIsKeptFromOneStepToTheNext) {
  LocalSteps local(
      {.count = 2, .optimizer = LocalOptimizerKind::kMomentum, .learning_rate = 1, .momentum = 0.5},
      kTensors);
  Values x = {{0, 0}, {0}};
  std::vector<float> differences;
  for (int step = 0; step < 3; ++step) {
    local.Begin(x.spans());
    Values gradient = {{1, 0}, {0}};
    EXPECT_TRUE(local.Apply(x.spans(), gradient.spans()));
    local.Finish(x.spans(), gradient.spans());
    differences.push_back(gradient.w[0]);
  }
  EXPECT_THAT(differences, ElementsAre(1, 1.5, 1.75));
}

TEST(LocalStepsTest, AdamWMovesEveryValueByTheRateAndDecaysIt) {
  LocalSteps local({.count = 2,
                    .optimizer = LocalOptimizerKind::kAdamW,
                    .learning_rate = 0.125,
                    .weight_decay = 0.5},
                   kTensors);
  Values x = {{1, -1}, {16}};
  local.Begin(x.spans());
  // With a constant gradient, the corrected moments are the gradient and its square.
  double w = 1, b = 16;
  for (int step = 0; step < 5; ++step) {
    Values gradient = {{3, -3}, {0}};
    EXPECT_TRUE(local.Apply(x.spans(), gradient.spans()));
    w = w * (1 - 0.125 * 0.5) - 0.125;
    b = b * (1 - 0.125 * 0.5);
    EXPECT_NEAR(x.w[0], w, 1e-5);
    EXPECT_NEAR(x.w[1], -w, 1e-5);
    EXPECT_NEAR(x.b[0], b, 1e-5);
  }
}

TEST(LocalStepsTest, AGradientIsDividedByTheLossScale) {
  LocalSteps local({.count = 2, .learning_rate = 1}, kTensors);
  Values x = {{0, 0}, {0}};
  local.Begin(x.spans());
  Values gradient = {{1024, 512}, {0}};
  EXPECT_TRUE(local.Apply(x.spans(), gradient.spans(), 1024));
  EXPECT_EQ(x, (Values{{-1, -0.5}, {0}}));
}

TEST(LocalStepsTest, AGradientThatIsNotFiniteChangesNothing) {
  LocalSteps local(
      {.count = 3, .optimizer = LocalOptimizerKind::kMomentum, .learning_rate = 1, .momentum = 0.5},
      kTensors);
  Values x = {{0, 0}, {0}};
  local.Begin(x.spans());
  for (const float lost : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Values gradient = {{1, 1}, {lost}};
    EXPECT_FALSE(local.Apply(x.spans(), gradient.spans()));
    EXPECT_EQ(x, (Values{{0, 0}, {0}}));
  }
  Values gradient = {{1, 1}, {1}};
  EXPECT_TRUE(local.Apply(x.spans(), gradient.spans()));
  EXPECT_EQ(x, (Values{{-1, -1}, {-1}})) << "the momentum has only the finite gradient";
}

}  // namespace
}  // namespace thinwire::client
