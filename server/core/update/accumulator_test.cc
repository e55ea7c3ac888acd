#include "server/core/update/accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
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

bool NobodyMayPush(WorkerId) { return false; }

TEST(AccumulatorTest, WeighsGradientsByExamplesAndCountsLateExamples) {
  Accumulator accumulator(2);
  accumulator.Fold(Of(1, 2, {1, 10}));
  Gradient late = Of(0, 3, {2, 20});
  late.late_examples = 5;
  accumulator.Fold(late);
  EXPECT_EQ(Sum(accumulator), (std::vector<float>{8, 80}));
  EXPECT_EQ(accumulator.count(), 2u);
  EXPECT_EQ(accumulator.examples(), 5u);
  EXPECT_EQ(accumulator.weight(), 10u);
  EXPECT_EQ(accumulator.Contributors(), (std::vector<WorkerId>{WorkerId{0}, WorkerId{1}}));
}

TEST(AccumulatorTest, AFactorChangesTheSumAndNotTheWeight) {
  Accumulator accumulator(2);
  Gradient half = Of(1, 2, {4, 10});
  half.factor = 0.5;
  accumulator.Fold(half);
  EXPECT_EQ(Sum(accumulator), (std::vector<float>{4, 10})) << "of the encoded gradient";
  accumulator.Fold(half);
  EXPECT_EQ(Sum(accumulator), (std::vector<float>{8, 20}));
  EXPECT_EQ(accumulator.weight(), 4u);
  EXPECT_EQ(accumulator.examples(), 4u);
}

TEST(AccumulatorTest, TheNormIsThatOfTheMean) {
  Accumulator accumulator(3);
  accumulator.Fold(Of(0, 2, {3, 1, 0}));
  EXPECT_DOUBLE_EQ(accumulator.SquaredNormOfMean(), 10) << "of the encoded gradient";
  Gradient late = Of(1, 1, {6, 2, 4});
  late.late_examples = 1;
  accumulator.Fold(late);
  EXPECT_DOUBLE_EQ(accumulator.SquaredNormOfMean(), 9 + 1 + 1);
}

TEST(AccumulatorTest, TheNormOfASparseSumIsThatOfItsEntries) {
  Accumulator accumulator(4, /*keep_sparse=*/true);
  accumulator.Fold({WorkerId{0}, 1, 0, SparsePayload(std::vector<float>{0, 4, 0, 0})});
  accumulator.Fold({WorkerId{1}, 1, 0, SparsePayload(std::vector<float>{6, 0, 0, 0})});
  ASSERT_TRUE(accumulator.sparse());
  EXPECT_DOUBLE_EQ(accumulator.SquaredNormOfMean(), 9 + 4);
}

TEST(AccumulatorTest, TheFirstGradientAfterClearOverwrites) {
  Accumulator accumulator(1);
  accumulator.Fold(Of(0, 1, {100}));
  accumulator.Clear();
  EXPECT_EQ(accumulator.count(), 0u);
  EXPECT_EQ(accumulator.weight(), 0u);
  accumulator.Fold(Of(0, 2, {3}));
  EXPECT_EQ(Sum(accumulator), std::vector<float>{6});
}

TEST(AccumulatorTest, WeightsDoNotWrapAround) {
  Accumulator accumulator(1);
  Gradient large = Of(0, 0xffffffffu, {0});
  large.late_examples = 0xffffffffu;
  accumulator.Fold(large);
  accumulator.Fold(large);
  EXPECT_EQ(accumulator.examples(), 2 * 0xffffffffull);
  EXPECT_EQ(accumulator.weight(), 4 * 0xffffffffull);
}

// Returns a gradient of worker 0. The weak pointer WATCH expires when the payload of the gradient
// is released.
Gradient Watched(std::weak_ptr<int>& watch) {
  auto token = std::make_shared<int>(1);
  watch = token;
  Gradient gradient = Of(0, 1, {1});
  gradient.payload.Hold(std::move(token));
  return gradient;
}

TEST(AccumulatorTest, FoldSingleReleasesThePayload) {
  Accumulator accumulator(1);
  std::weak_ptr<int> watch;
  accumulator.Fold(Watched(watch));
  EXPECT_FALSE(watch.expired());
  accumulator.FoldSingle();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(Sum(accumulator), std::vector<float>{1});
}

TEST(AccumulatorTest, ASecondGradientReleasesBothPayloads) {
  Accumulator accumulator(1);
  std::weak_ptr<int> first, second;
  accumulator.Fold(Watched(first));
  accumulator.Fold(Watched(second));
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(Sum(accumulator), std::vector<float>{2});
}

TEST(AccumulatorTest, ClearReleasesASinglePayload) {
  Accumulator accumulator(1);
  std::weak_ptr<int> watch;
  accumulator.Fold(Watched(watch));
  EXPECT_EQ(Sum(accumulator), std::vector<float>{1});
  accumulator.Clear();
  EXPECT_TRUE(watch.expired());
}

TEST(AccumulatorTest, AHeldPayloadIsReleasedWhenItIsFolded) {
  Accumulator accumulator(1);
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  {
    Gradient gradient = Of(1, 1, {1});
    gradient.payload.Hold(std::move(token));
    accumulator.Hold(gradient);
  }
  accumulator.FoldInOrder([](WorkerId w) { return w == WorkerId{0}; });
  EXPECT_FALSE(watch.expired());
  accumulator.FoldInOrder(NobodyMayPush);
  accumulator.FoldSingle();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(Sum(accumulator), std::vector<float>{1});
}

TEST(AccumulatorTest, CountsHeldGradients) {
  Accumulator accumulator(1);
  accumulator.Hold(Of(3, 7, {1}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_EQ(accumulator.examples(), 7u);
}

// In fp32, the sum of 1e8, 1 and -1e8 depends on the order of the additions.
TEST(AccumulatorTest, OrderedFoldingGivesTheSameBitsInAnyArrivalOrder) {
  const float values[] = {1e8f, 1.0f, -1e8f, 3.0f};
  std::vector<uint32_t> order = {0, 1, 2, 3};
  do {
    Accumulator accumulator(1);
    std::vector<bool> came(4, false);
    for (const uint32_t worker : order) {
      came[worker] = true;
      accumulator.Hold(Of(worker, 1, {values[worker]}));
      accumulator.FoldInOrder([&](WorkerId w) { return !came[w.value]; });
    }
    EXPECT_EQ(Sum(accumulator)[0], ((1e8f + 1.0f) - 1e8f) + 3.0f);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Returns a topk payload that contains the SENT_COUNT elements of VALUES with the largest
// magnitudes.
CheckedPayload TopKPayload(const std::vector<float>& values, size_t sent_count) {
  const double density = static_cast<double>(sent_count) / static_cast<double>(values.size());
  const auto codec = MakeCodec({.id = CodecId::kTopK, .density = density}).value();
  return CheckPayload(ByteChain(Encoded(*codec, values)), values.size()).value();
}

Gradient SparseOf(uint32_t worker, uint32_t examples, const std::vector<float>& values,
                  size_t sent_count) {
  return {WorkerId{worker}, examples, 0, TopKPayload(values, sent_count)};
}

using Entries = std::vector<std::pair<uint32_t, float>>;

Entries EntriesOf(const Accumulator& accumulator) {
  Entries entries;
  accumulator.ForEachEntry([&](std::span<const uint32_t> indices, std::span<const float> sums) {
    for (size_t j = 0; j < indices.size(); ++j) entries.emplace_back(indices[j], sums[j]);
  });
  return entries;
}

TEST(AccumulatorTest, TheSumOfSparsePayloadsHasTheUnionOfTheirEntries) {
  Accumulator accumulator(5, true);
  accumulator.Fold(SparseOf(0, 2, {0, 0, 0, 9, 1}, 2));
  EXPECT_TRUE(accumulator.sparse());
  EXPECT_EQ(EntriesOf(accumulator), (Entries{{3, 18}, {4, 2}}));
  accumulator.Fold(SparseOf(1, 1, {5, 0, 0, -7, 0}, 2));
  EXPECT_TRUE(accumulator.sparse());
  EXPECT_EQ(EntriesOf(accumulator), (Entries{{0, 5}, {3, 11}, {4, 2}}));
}

TEST(AccumulatorTest, ClearRemovesEntries) {
  Accumulator accumulator(4, true);
  accumulator.Fold(SparseOf(0, 1, {1, 0, 0, 0}, 1));
  accumulator.FoldSingle();
  accumulator.Clear();
  accumulator.Fold(SparseOf(0, 1, {0, 0, 3, 0}, 1));
  accumulator.FoldSingle();
  EXPECT_EQ(EntriesOf(accumulator), (Entries{{2, 3}}));
}

TEST(AccumulatorTest, ADensePayloadMakesTheSumDenseInAnyOrder) {
  for (const bool dense_first : {false, true}) {
    Accumulator accumulator(3, true);
    // Fills the sum with values that must not reappear after Clear().
    accumulator.Fold(Of(0, 1, {100, 100, 100}));
    accumulator.FoldSingle();
    accumulator.Clear();
    if (dense_first) accumulator.Fold(Of(0, 1, {1, 2, 3}));
    accumulator.Fold(SparseOf(1, 1, {0, 10, 0}, 1));
    if (!dense_first) accumulator.Fold(Of(0, 1, {1, 2, 3}));
    EXPECT_FALSE(accumulator.sparse());
    EXPECT_EQ(Sum(accumulator), (std::vector<float>{1, 12, 3}));
    accumulator.Clear();
    accumulator.Fold(SparseOf(1, 1, {0, 0, 4}, 1));
    EXPECT_EQ(EntriesOf(accumulator), (Entries{{2, 4}}));
  }
}

TEST(AccumulatorTest, WithoutKeepSparseEverySumIsDense) {
  Accumulator accumulator(3);
  accumulator.Fold(SparseOf(0, 1, {0, 10, 0}, 1));
  EXPECT_FALSE(accumulator.sparse());
  EXPECT_EQ(Sum(accumulator), (std::vector<float>{0, 10, 0}));
}

// Compares a sparse sum with the dense sum of the same gradients.
TEST(AccumulatorTest, EntriesHaveTheBitsOfTheDenseSum) {
  constexpr size_t kValues = 4000;
  for (const uint32_t gradient_count : {1u, 2u, 5u}) {
    Accumulator sparse(kValues, true);
    Accumulator dense(kValues);
    for (uint32_t worker = 0; worker < gradient_count; ++worker) {
      const Gradient gradient = SparseOf(worker, 3 + worker, Laplace(kValues, worker), 900);
      sparse.Fold(gradient);
      dense.Fold(gradient);
    }
    std::vector<float> filled_in(kValues);
    uint32_t last = 0;
    for (const auto& [index, sum] : EntriesOf(sparse)) {
      EXPECT_TRUE(index > last || last == 0);
      filled_in[index] = sum;
      last = index;
    }
    EXPECT_EQ(filled_in, Sum(dense));
  }
}

}  // namespace
}  // namespace thinwire
