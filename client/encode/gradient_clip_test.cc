#include "client/encode/gradient_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reductions.h"

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

TEST(GradientClipTest, WithoutALimitTheFactorIsKnownAtOnce) {
  GradientClip clip(0, 4, 2);
  clip.Begin();
  EXPECT_TRUE(clip.known());
  EXPECT_EQ(clip.factor(), 1);
  clip.Ready(0, kernels::SumOfSquares(Floats{1e30f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(clip.factor(), 1) << "each shard is then checked for values that are not finite";
}

TEST(GradientClipTest, TheNormCoversAllTensorsAndTheLimitAllWorkers) {
  GradientClip clip(2, 4, 2);  // one worker's limit is 2 / sqrt(4) = 1
  clip.Begin();
  clip.Ready(1, kernels::SumOfSquares(Floats{3}));
  EXPECT_FALSE(clip.known());
  clip.Ready(0, kernels::SumOfSquares(Floats{4, 0, 0}));
  ASSERT_TRUE(clip.known());
  EXPECT_FLOAT_EQ(clip.factor(), 1.0f / 5);
}

TEST(GradientClipTest, AGradientWithinTheLimitIsNotChanged) {
  GradientClip clip(5, 1, 1);
  clip.Begin();
  clip.Ready(0, kernels::SumOfSquares(Floats{3, 4}));
  EXPECT_EQ(clip.factor(), 1);
}

TEST(GradientClipTest, EveryStepHasItsOwnNorm) {
  GradientClip clip(1, 1, 1);
  clip.Begin();
  clip.Ready(0, kernels::SumOfSquares(Floats{4}));
  EXPECT_FLOAT_EQ(clip.factor(), 0.25f);
  clip.Begin();
  EXPECT_FALSE(clip.known());
  clip.Ready(0, kernels::SumOfSquares(Floats{2}));
  EXPECT_FLOAT_EQ(clip.factor(), 0.5f);
}

TEST(GradientClipTest, AClippedGradientHasTheNormOfTheLimit) {
  GradientClip clip(0.125, 1, 2);
  Floats a(1003), b(77);
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = 1e-3f * static_cast<float>(i);
  clip.Begin();
  clip.Ready(0, kernels::SumOfSquares(a));
  clip.Ready(1, kernels::SumOfSquares(b));
  double squares = 0;
  for (const Floats* tensor : {&a, &b}) {
    for (const float value : *tensor) squares += std::pow(double{clip.factor()} * value, 2);
  }
  EXPECT_NEAR(std::sqrt(squares), 0.125, 1e-7);
}

TEST(GradientClipTest, TheScaleIsRemovedAndDoesNotCountInTheNorm) {
  GradientClip plain(0, 1, 1);
  plain.Begin(0x1p20f);
  EXPECT_EQ(plain.factor(), 0x1p-20f);
  plain.Begin();
  EXPECT_EQ(plain.factor(), 1);
  GradientClip clip(2, 1, 1);
  clip.Begin(1024);
  clip.Ready(0, kernels::SumOfSquares(Floats{1024, 1024}));
  EXPECT_EQ(clip.factor(), 1.0f / 1024) << "a norm of sqrt(2) is within the limit";
  clip.Begin(1024);
  clip.Ready(0, kernels::SumOfSquares(Floats{3 * 1024, 4 * 1024}));
  EXPECT_FLOAT_EQ(clip.factor(), 0.4f / 1024);
}

// The squares of large finite values do not overflow. A single value that is not finite makes the
// factor not finite.
TEST(GradientClipTest, TheFactorIsFiniteOnlyForFiniteValues) {
  GradientClip clip(1, 1, 2);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    clip.Begin();
    clip.Ready(0, kernels::SumOfSquares(Floats{1, bad, 1}));
    clip.Ready(1, kernels::SumOfSquares(Floats{1}));
    EXPECT_TRUE(std::isnan(clip.factor()));
  }
  clip.Begin();
  clip.Ready(0, kernels::SumOfSquares(Floats(3, std::numeric_limits<float>::max())));
  clip.Ready(1, kernels::SumOfSquares(Floats{0}));
  EXPECT_GT(clip.factor(), 0);
}

}  // namespace
}  // namespace thinwire::client
