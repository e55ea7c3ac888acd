// Tests the contract of ApplySparse with every optimizer.
#include "server/core/optimizer/sparse_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/core/optimizer/optimizer_cases.h"

namespace thinwire {
namespace {

constexpr size_t kCount = 1300;  // number of values: two full blocks and a partial block
constexpr float kRate = 0.0625f;

// The masters and slots of a shard with lazy slots, and the number of each value's last update with
// an entry.
struct Arrays {
  std::vector<float> masters;
  std::vector<std::vector<float>> slots;
  std::vector<uint32_t> last;

  bool operator==(const Arrays&) const = default;
};

std::vector<float> Draw(size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<float> values(length);
  for (float& value : values) value = uniform(random);
  return values;
}

// Returns a random set of indices, each with a probability of PERCENT percent.
std::vector<uint32_t> DrawIndices(uint32_t percent, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (random() % 100 < percent) indices.push_back(i);
  }
  return indices;
}

std::vector<uint32_t> AllIndices() {
  std::vector<uint32_t> all(kCount);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

Update Numbered(uint64_t number) {
  return {.learning_rate = kRate, .gradient_scale = 0.5f, .number = number};
}

class SparseUpdateTest : public testing::TestWithParam<OptimizerCase> {
 protected:
  SparseUpdateTest()
      : optimizer_(MakeOptimizer({.kind = GetParam().kind,
                                  .beta1 = 0.875,
                                  .beta2 = 0.98,
                                  .weight_decay = GetParam().weight_decay})
                       .value()) {}

  Arrays Start() const {
    return {.masters = Draw(kCount, 1),
            .slots = std::vector<std::vector<float>>(optimizer_->slot_count(),
                                                     std::vector<float>(kCount)),
            .last = std::vector<uint32_t>(kCount)};
  }

  void Apply(const Update& update, std::span<const uint32_t> indices, std::span<const float> sums,
             Arrays& arrays) const {
    const std::vector<std::span<float>> slots(arrays.slots.begin(), arrays.slots.end());
    ApplySparse(*optimizer_, update, indices, sums, {arrays.masters, slots, arrays.last});
  }
  void ApplyWhole(const Update& update, std::span<const float> sum, Arrays& arrays) const {
    const std::vector<std::span<float>> slots(arrays.slots.begin(), arrays.slots.end());
    optimizer_->Apply(update, sum, arrays.masters, slots);
  }

  // Returns arrays to which updates 1 to 3 were applied. Each update changes a third of the values.
  Arrays WithHistory() const {
    Arrays arrays = Start();
    for (uint32_t n = 1; n <= 3; ++n) {
      const std::vector<uint32_t> indices = DrawIndices(33, n);
      Apply(Numbered(n), indices, Draw(indices.size(), 10 + n), arrays);
    }
    return arrays;
  }

  const std::unique_ptr<const Optimizer> optimizer_;
};

TEST_P(SparseUpdateTest, AnEntryForEveryValueGivesTheBitsOfTheDenseUpdate) {
  Arrays sparse = Start();
  Arrays dense = Start();
  for (uint32_t n = 1; n <= 4; ++n) {
    const std::vector<float> sum = Draw(kCount, 20 + n);
    Apply(Numbered(n), AllIndices(), sum, sparse);
    ApplyWhole(Numbered(n), sum, dense);
  }
  EXPECT_EQ(sparse.masters, dense.masters);
  EXPECT_EQ(sparse.slots, dense.slots);
}

TEST_P(SparseUpdateTest, ValuesWithoutAnEntryKeepTheirBits) {
  const Arrays before = WithHistory();
  Arrays after = before;
  const std::vector<uint32_t> indices = DrawIndices(20, 7);
  Apply(Numbered(9), indices, Draw(indices.size(), 8), after);
  size_t next = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (next < indices.size() && indices[next] == i) {
      EXPECT_NE(after.masters[i], before.masters[i]) << "value " << i;
      EXPECT_EQ(after.last[i], 9u);
      ++next;
      continue;
    }
    ASSERT_EQ(after.masters[i], before.masters[i]) << "value " << i;
    ASSERT_EQ(after.last[i], before.last[i]);
    for (size_t s = 0; s < before.slots.size(); ++s) {
      ASSERT_EQ(after.slots[s][i], before.slots[s][i]) << "slot " << s << ", value " << i;
    }
  }
}

TEST_P(SparseUpdateTest, AnUpdateWithoutEntriesChangesNothing) {
  Arrays arrays = WithHistory();
  Apply(Numbered(4), {}, {}, arrays);
  EXPECT_EQ(arrays, WithHistory());
}

TEST_P(SparseUpdateTest, TwoCallsOnPartsEqualOneCall) {
  const std::vector<uint32_t> indices = DrawIndices(60, 5);
  const std::vector<float> sums = Draw(indices.size(), 6);
  Arrays whole = WithHistory();
  Apply(Numbered(20), indices, sums, whole);
  for (size_t cut = 0; cut <= indices.size(); cut += 61) {
    Arrays parts = WithHistory();
    Apply(Numbered(20), std::span(indices).first(cut), std::span(sums).first(cut), parts);
    Apply(Numbered(20), std::span(indices).subspan(cut), std::span(sums).subspan(cut), parts);
    ASSERT_EQ(parts, whole) << "cut at " << cut;
  }
}

// An update without an entry for a value affects this value only through weight decay.
TEST_P(SparseUpdateTest, UpdatesWithoutAnEntryMatterOnlyForWeightDecay) {
  Arrays with_gap = Start();
  Arrays without = Start();
  const std::vector<float> sum = Draw(kCount, 2);
  constexpr uint64_t kSecond = 132;  // the update's number, on which Adam's bias correction depends
  Apply(Numbered(1), AllIndices(), sum, with_gap);
  for (uint64_t n = 2; n < kSecond; ++n) Apply(Numbered(n), {}, {}, with_gap);
  Apply(Numbered(kSecond), AllIndices(), sum, with_gap);
  ApplyWhole(Numbered(1), sum, without);
  ApplyWhole(Numbered(kSecond), sum, without);
  const bool decays = GetParam().weight_decay != 0;
  EXPECT_EQ(with_gap.masters != without.masters, decays);
  if (!decays) {
    EXPECT_EQ(with_gap.slots, without.slots);
  }
}

// Compares ApplySparse with the formulas in sparse_update.h, computed value by value.
TEST_P(SparseUpdateTest, AppliesMissedWeightDecayBeforeTheUpdate) {
  Arrays sparse = WithHistory();
  Arrays by_hand = sparse;
  const std::vector<float> sum = Draw(kCount, 3);
  constexpr uint64_t kNumber = 77;
  for (size_t i = 0; i < kCount; ++i) {
    const double missed = static_cast<double>(kNumber - 1 - by_hand.last[i]);
    by_hand.masters[i] *= static_cast<float>(std::pow(1 - kRate * GetParam().weight_decay, missed));
  }
  ApplyWhole(Numbered(kNumber), sum, by_hand);
  Apply(Numbered(kNumber), AllIndices(), sum, sparse);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(sparse.masters[i], by_hand.masters[i], 1e-6) << "value " << i;
  }
}

TEST_P(SparseUpdateTest, TheNumberOfTheLastUpdateMayWrapAround) {
  Arrays arrays = WithHistory();
  Apply(Numbered(4), AllIndices(), Draw(kCount, 1), arrays);
  Apply(Numbered(0x1'0000'0003), AllIndices(), Draw(kCount, 2), arrays);
  for (const float master : arrays.masters) ASSERT_TRUE(std::isfinite(master));
  EXPECT_EQ(arrays.last, std::vector<uint32_t>(kCount, 3));
}

// With a rate times weight decay above 2, the missed decay of a few updates overflows.
TEST_P(SparseUpdateTest, MissedDecayThatOverflowsLeavesFiniteMasters) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Arrays arrays = WithHistory();
  arrays.masters[0] = 0;
  bool saturated = false;
  for (const uint64_t number : {20, 21, 9000, 9001}) {
    const std::vector<std::span<float>> slots(arrays.slots.begin(), arrays.slots.end());
    saturated |= ApplySparse(*optimizer_, {.learning_rate = kMax, .number = number}, AllIndices(),
                             Draw(kCount, 4), {arrays.masters, slots, arrays.last});
    for (const float master : arrays.masters) ASSERT_TRUE(std::isfinite(master));
    for (const auto& slot : arrays.slots) {
      for (const float value : slot) ASSERT_TRUE(std::isfinite(value));
    }
  }
  EXPECT_TRUE(saturated);
}

// Returns the optimizers that jobs may use with lazy_slots.
std::vector<OptimizerCase> LazyCases() {
  std::vector<OptimizerCase> cases = OptimizerCases();
  std::erase_if(cases, [](const OptimizerCase& c) { return Traits(c.kind).reads_norms; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(AllOptimizers, SparseUpdateTest, testing::ValuesIn(LazyCases()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace thinwire
