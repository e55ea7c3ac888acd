#include "server/core/update/global_top_k.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

Gradient Of(uint32_t examples, uint32_t late_examples, std::initializer_list<float> values) {
  return {WorkerId{0}, examples, late_examples, Fp32Payload(values)};
}

float ScaleOf(const Accumulator& accumulator) {
  return static_cast<float>(1.0 / static_cast<double>(accumulator.weight()));
}

template <typename T>
std::vector<T> Copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

TEST(GlobalTopKTest, SelectsTheLargestValuesAndKeepsTheRemainder) {
  GlobalTopK selection(4);
  Accumulator accumulator(4);
  accumulator.Fold(Of(2, 2, {4, -8, 2, 6}));
  selection.Select(accumulator, ScaleOf(accumulator), 2);
  EXPECT_EQ(Copy(selection.indices()), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(Copy(selection.values()), (std::vector<float>{-4, 3}));
  EXPECT_EQ(Copy(selection.remainder()), (std::vector<float>{2, 0, 1, 0}));
}

TEST(GlobalTopKTest, TheRemainderJoinsALaterGradientOfAnyWeight) {
  GlobalTopK selection(2);
  Accumulator accumulator(2);
  accumulator.Fold(Of(1, 0, {3, 4}));
  selection.Select(accumulator, ScaleOf(accumulator), 1);
  accumulator.Clear();
  accumulator.Fold(Of(100, 100, {2, 0}));
  selection.Select(accumulator, ScaleOf(accumulator), 1);
  EXPECT_EQ(Copy(selection.indices()), std::vector<uint32_t>{0});
  EXPECT_EQ(Copy(selection.values()), std::vector<float>{4});
}

TEST(GlobalTopKTest, DropsARemainderThatTheWorkersKeep) {
  GlobalTopK selection(2, UnselectedOwner::kWorkers);
  Accumulator accumulator(2);
  accumulator.Fold(Of(1, 0, {3, 4}));
  selection.Select(accumulator, ScaleOf(accumulator), 1);
  EXPECT_EQ(Copy(selection.values()), std::vector<float>{4});
  EXPECT_EQ(Copy(selection.remainder()), (std::vector<float>{0, 0}));
  accumulator.Clear();
  accumulator.Fold(Of(1, 0, {2, 0}));
  selection.Select(accumulator, ScaleOf(accumulator), 1);
  EXPECT_EQ(Copy(selection.values()), std::vector<float>{2});
}

TEST(GlobalTopKTest, SelectsTheLowerIndexAmongEqualMagnitudes) {
  GlobalTopK selection(3);
  Accumulator accumulator(3);
  accumulator.Fold(Of(1, 0, {1, -2, 2}));
  selection.Select(accumulator, 1, 1);
  EXPECT_EQ(Copy(selection.indices()), std::vector<uint32_t>{1});
}

TEST(GlobalTopKTest, NeverSelectsZeros) {
  GlobalTopK selection(4);
  Accumulator accumulator(4);
  accumulator.Fold(Of(1, 0, {0, 5, 0, -1}));
  selection.Select(accumulator, 1, 4);
  EXPECT_EQ(Copy(selection.indices()), (std::vector<uint32_t>{1, 3}));
}

TEST(GlobalTopKTest, BlocksHoldTheSelectionAndZeros) {
  constexpr size_t kValues = 2 * kDecodedBlock + 100;
  GlobalTopK selection(kValues);
  Accumulator accumulator(kValues);
  accumulator.Fold({WorkerId{0}, 1, 0, Fp32Payload(Gauss(kValues, 1))});
  selection.Select(accumulator, 1, 42);
  std::vector<float> want(kValues);
  for (size_t j = 0; j < selection.indices().size(); ++j) {
    want[selection.indices()[j]] = selection.values()[j];
  }
  std::vector<float> got;
  selection.ForEachBlock([&](size_t first, std::span<const float> values) {
    EXPECT_EQ(first, got.size());
    got.insert(got.end(), values.begin(), values.end());
  });
  EXPECT_EQ(got, want);
}

// Makes many updates from sparse and dense gradients of different weights.
TEST(GlobalTopKTest, SelectedValuesAndRemainderEqualTheSumOfTheAverages) {
  constexpr size_t kValues = 500;
  const auto topk = MakeCodec({.id = CodecId::kTopK, .density = 0.1}).value();
  GlobalTopK selection(kValues);
  Accumulator accumulator(kValues, true);
  std::vector<double> averages(kValues), selected(kValues);
  for (uint32_t update = 0; update < 200; ++update) {
    std::vector<double> sum(kValues);
    for (uint32_t worker = 0; worker < 3; ++worker) {
      const std::vector<float> values = Laplace(kValues, 3 * update + worker);
      const CheckedPayload payload =
          update % 7 == 0 ? Fp32Payload(values)
                          : CheckPayload(ByteChain(Encoded(*topk, values)), kValues).value();
      const uint32_t examples = 1 + (update + worker) % 5;
      accumulator.Fold({WorkerId{worker}, examples, update % 3, payload});
      const std::vector<float> decoded = Values(payload);
      for (size_t i = 0; i < kValues; ++i) sum[i] += double{decoded[i]} * examples;
    }
    const double weight = static_cast<double>(accumulator.weight());
    for (size_t i = 0; i < kValues; ++i) averages[i] += sum[i] / weight;
    selection.Select(accumulator, ScaleOf(accumulator), 10);
    accumulator.Clear();
    ASSERT_EQ(selection.indices().size(), 10u);
    for (size_t j = 0; j < 10; ++j) selected[selection.indices()[j]] += selection.values()[j];
  }
  for (size_t i = 0; i < kValues; ++i) {
    EXPECT_NEAR(selected[i] + selection.remainder()[i], averages[i], 1e-4) << "value " << i;
  }
}

TEST(GlobalTopKTest, ARemainderThatOverflowsStaysFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  GlobalTopK selection(4);
  Accumulator accumulator(4);
  for (int i = 0; i < 4; ++i) {
    accumulator.Clear();
    accumulator.Fold(Of(1, 0, {kMax / 2, -kMax / 2, kMax / 2, kMax / 2}));
    selection.Select(accumulator, 1, 1);
    for (const float value : selection.values()) EXPECT_TRUE(std::isfinite(value));
    for (const float value : selection.remainder()) EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_EQ(selection.remainder()[3], kMax);
}

}  // namespace
}  // namespace thinwire
