#include "server/core/accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

Gradient Of(uint32_t worker, uint32_t examples, std::initializer_list<float> values) {
  return {WorkerId{worker}, examples, 0, Fp32Payload(values)};
}

std::vector<float> Sum(const Accumulator& accumulator) {
  return {accumulator.sum().begin(), accumulator.sum().end()};
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

TEST(AccumulatorTest, AFoldedPayloadIsLetGo) {
  Accumulator accumulator(1);
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  {
    Gradient gradient = Of(0, 1, {1});
    gradient.payload.Hold(std::move(token));
    accumulator.Fold(gradient);
  }
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
    EXPECT_EQ(accumulator.sum()[0], ((1e8f + 1.0f) - 1e8f) + 3.0f);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace thinwire
