#include "server/core/update/gradient_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "server/core/testing/fakes.h"
#include "server/core/update/accumulator.h"

namespace thinwire {
namespace {

constexpr size_t kValues = 64;
constexpr double kTrueGradient = 0.5;  // of each value
constexpr double kDeviation = 3;       // of each value of one example's gradient

// Adds a push with the mean of EXAMPLES random gradients to both NOISE and ROUND.
void Push(uint32_t worker, uint32_t examples, std::mt19937& random, GradientNoise& noise,
          Accumulator& round) {
  std::normal_distribution<double> value(kTrueGradient, kDeviation / std::sqrt(examples));
  std::vector<float> values(kValues);
  for (float& v : values) v = static_cast<float>(value(random));
  const Gradient gradient = {WorkerId{worker}, examples, 0, Fp32Payload(values)};
  noise.Add(gradient);
  round.Fold(gradient);
}

void ExpectEstimate(std::span<const uint32_t> examples) {
  std::mt19937 random(1);
  GradientNoise noise;
  double variance = 0;
  double squared_gradient = 0;
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    Accumulator round(kValues);
    for (uint32_t w = 0; w < examples.size(); ++w) Push(w, examples[w], random, noise, round);
    noise.Close(round);
    variance += noise.estimate().variance / kRounds;
    squared_gradient += noise.estimate().squared_gradient / kRounds;
  }
  EXPECT_EQ(noise.estimate().rounds, uint64_t{kRounds});
  EXPECT_NEAR(variance, kValues * kDeviation * kDeviation, 20);
  EXPECT_NEAR(squared_gradient, kValues * kTrueGradient * kTrueGradient, 2);
}

TEST(GradientNoiseTest, EstimatesTheVarianceAndTheGradientWithoutBias) {
  ExpectEstimate(std::vector<uint32_t>{8, 8, 8, 8});
}

TEST(GradientNoiseTest, PushesMayHaveDifferentNumbersOfExamples) {
  ExpectEstimate(std::vector<uint32_t>{1, 16, 5});
}

TEST(GradientNoiseTest, EqualPushesHaveNoNoise) {
  GradientNoise noise;
  Accumulator round(2);
  for (uint32_t w = 0; w < 2; ++w) {
    const Gradient gradient = {WorkerId{w}, 4, 0, Fp32Payload({3, 4})};
    noise.Add(gradient);
    round.Fold(gradient);
  }
  noise.Close(round);
  EXPECT_EQ(noise.estimate(), (NoiseEstimate{.variance = 0, .squared_gradient = 25, .rounds = 1}));
}

TEST(GradientNoiseTest, SparsePushesAreZeroElsewhere) {
  GradientNoise noise;
  Accumulator round(4, /*keep_sparse=*/true);
  for (uint32_t w = 0; w < 2; ++w) {
    const std::vector<float> values = {w == 0 ? 2.0f : 0.0f, 0, 0, w == 0 ? 0.0f : 2.0f};
    const Gradient gradient = {WorkerId{w}, 1, 0, SparsePayload(values)};
    noise.Add(gradient);
    round.Fold(gradient);
  }
  ASSERT_TRUE(round.sparse());
  noise.Close(round);
  // |push|^2 = 4 and |mean|^2 = 2: S = (4 - 2) / (1 - 1/2) = 4 and |G|^2 = 2 - 4/2.
  EXPECT_EQ(noise.estimate(), (NoiseEstimate{.variance = 4, .squared_gradient = 0, .rounds = 1}));
}

// Returns the estimate of one round whose pushes have these numbers of late examples. Each push has
// one example and one value: 1, 2, and so on.
NoiseEstimate EstimateOf(const std::vector<uint32_t>& late_examples) {
  GradientNoise noise;
  Accumulator round(1);
  for (uint32_t w = 0; w < late_examples.size(); ++w) {
    const Gradient gradient = {WorkerId{w}, 1, late_examples[w],
                               Fp32Payload({static_cast<float>(w + 1)})};
    noise.Add(gradient);
    round.Fold(gradient);
  }
  noise.Close(round);
  return noise.estimate();
}

TEST(GradientNoiseTest, RoundsWithoutTwoPushesOrASingleBatchAreLeftOut) {
  EXPECT_EQ(EstimateOf({0}), NoiseEstimate());
  EXPECT_EQ(EstimateOf({1, 1}), NoiseEstimate());
}

TEST(GradientNoiseTest, APushWithLateExamplesCountsInTheUpdateOnly) {
  // |push|^2 = 1, b = 1. The update is (1 + 2) / 3 with B = 3 examples: S = (1 - 1) / (1 - 1/3) =
  // 0.
  EXPECT_EQ(EstimateOf({0, 1}), (NoiseEstimate{.variance = 0, .squared_gradient = 1, .rounds = 1}));
  // The mean of |push|^2 is (1 + 4) / 2. The update is (1 + 2 + 3) / 4 with B = 4 examples.
  const NoiseEstimate estimate = EstimateOf({0, 0, 1});
  EXPECT_DOUBLE_EQ(estimate.variance, (2.5 - 2.25) / (1 - 0.25));
  EXPECT_DOUBLE_EQ(estimate.squared_gradient, 2.25 - estimate.variance / 4);
}

TEST(GradientNoiseTest, TheNoiseOfAModelIsTheSumOverItsShards) {
  const NoiseEstimate shards[] = {{.variance = 2, .squared_gradient = 0.5, .rounds = 7},
                                  {.variance = 8, .squared_gradient = 1.5, .rounds = 6}};
  const NoiseEstimate sum = SumOfNoise(shards);
  EXPECT_EQ(sum, (NoiseEstimate{.variance = 10, .squared_gradient = 2, .rounds = 6}));
  EXPECT_EQ(sum.scale(), 5);
  EXPECT_EQ((NoiseEstimate{.variance = 1, .squared_gradient = -1, .rounds = 1}).scale(),
            std::nullopt);
}

}  // namespace
}  // namespace thinwire
