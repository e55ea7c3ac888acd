#include "server/core/accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

Gradient Of(uint32_t worker, uint32_t examples, std::initializer_list<float> values) {
  return {WorkerId{worker}, examples, 0, Fp32Payload(values)};
}

std::vector<float> Sum(const Accumulator& accumulator) {
  std::vector<float> sum;
  accumulator.ForEachBlock([&](size_t first, std::span<const float> values) {
    EXPECT_EQ(first, sum.size());
    sum.insert(sum.end(), values.begin(), values.end());
  });
  return sum;
}

bool NobodyIsAwaited(WorkerId) { return false; }

TEST(AccumulatorTest, SumsByExamplesAndWeighsLateOnesToo) {
  Accumulator accumulator(2);
  accumulator.Fold(Of(1, 2, {1, 10}));
  Gradient late = Of(0, 3, {2, 20});
  late.late_examples = 5;
  accumulator.Fold(late);
  EXPECT_EQ(Sum(accumulator), (std::vector<float>{8, 80}));
  EXPECT_EQ(accumulator.count(), 2u);
  EXPECT_EQ(accumulator.examples(), 5u);
  EXPECT_EQ(accumulator.weight(), 10u);
  EXPECT_EQ(accumulator.Givers(), (std::vector<WorkerId>{WorkerId{0}, WorkerId{1}}));
}

TEST(AccumulatorTest, TheFirstAfterAClearOverwrites) {
  Accumulator accumulator(1);
  accumulator.Fold(Of(0, 1, {100}));
  accumulator.Clear();
  EXPECT_EQ(accumulator.count(), 0u);
  EXPECT_EQ(accumulator.weight(), 0u);
  accumulator.Fold(Of(0, 2, {3}));
  EXPECT_EQ(Sum(accumulator), std::vector<float>{6});
}

TEST(AccumulatorTest, WeightsDoNotGoRound) {
  Accumulator accumulator(1);
  Gradient large = Of(0, 0xffffffffu, {0});
  large.late_examples = 0xffffffffu;
  accumulator.Fold(large);
  accumulator.Fold(large);
  EXPECT_EQ(accumulator.examples(), 2 * 0xffffffffull);
  EXPECT_EQ(accumulator.weight(), 4 * 0xffffffffull);
}

// A gradient of worker 0 that is gone when WATCH says so.
Gradient Watched(std::weak_ptr<int>& watch) {
  auto token = std::make_shared<int>(1);
  watch = token;
  Gradient gradient = Of(0, 1, {1});
  gradient.payload.Hold(std::move(token));
  return gradient;
}

TEST(AccumulatorTest, ALonePayloadIsLetGoWhenItIsToldTo) {
  Accumulator accumulator(1);
  std::weak_ptr<int> watch;
  accumulator.Fold(Watched(watch));
  EXPECT_FALSE(watch.expired());
  accumulator.FoldLone();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(Sum(accumulator), std::vector<float>{1});
}

TEST(AccumulatorTest, ALonePayloadIsLetGoWhenItHasCompany) {
  Accumulator accumulator(1);
  std::weak_ptr<int> first, second;
  accumulator.Fold(Watched(first));
  accumulator.Fold(Watched(second));
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(Sum(accumulator), std::vector<float>{2});
}

TEST(AccumulatorTest, ALonePayloadIsLetGoWithItsUpdate) {
  Accumulator accumulator(1);
  std::weak_ptr<int> watch;
  accumulator.Fold(Watched(watch));
  EXPECT_EQ(Sum(accumulator), std::vector<float>{1});
  accumulator.Clear();
  EXPECT_TRUE(watch.expired());
}

TEST(AccumulatorTest, AHeldPayloadIsLetGoWhenItsTurnComes) {
  Accumulator accumulator(1);
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  {
    Gradient gradient = Of(1, 1, {1});
    gradient.payload.Hold(std::move(token));
    accumulator.Keep(gradient);
  }
  accumulator.FoldTurns([](WorkerId w) { return w == WorkerId{0}; });
  EXPECT_FALSE(watch.expired());
  accumulator.FoldTurns(NobodyIsAwaited);
  accumulator.FoldLone();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(Sum(accumulator), std::vector<float>{1});
}

TEST(AccumulatorTest, WhatIsHeldCounts) {
  Accumulator accumulator(1);
  accumulator.Keep(Of(3, 7, {1}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_EQ(accumulator.examples(), 7u);
}

// 1e8 + 1 - 1e8 depends on the order in fp32; turns make it the workers' order.
TEST(AccumulatorTest, TurnsGiveTheSameBitsWhateverTheArrival) {
  const float values[] = {1e8f, 1.0f, -1e8f, 3.0f};
  std::vector<uint32_t> order = {0, 1, 2, 3};
  do {
    Accumulator accumulator(1);
    std::vector<bool> came(4, false);
    for (const uint32_t worker : order) {
      came[worker] = true;
      accumulator.Keep(Of(worker, 1, {values[worker]}));
      accumulator.FoldTurns([&](WorkerId w) { return !came[w.value]; });
    }
    EXPECT_EQ(Sum(accumulator)[0], ((1e8f + 1.0f) - 1e8f) + 3.0f);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace thinwire
