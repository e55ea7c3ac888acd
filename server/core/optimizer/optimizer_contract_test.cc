// Contract tests: every optimizer must pass the same tests of the Optimizer interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <utility>

#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/optimizer_cases.h"

namespace thinwire {
namespace {

// Maximum array length: more than four of the widest SIMD registers hold.
constexpr size_t kLongest = 67;

// The masters and slots of one shard.
struct Arrays {
  std::vector<float> masters;
  std::vector<std::vector<float>> slots;

  bool operator==(const Arrays&) const = default;
};

std::vector<float> Draw(size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<float> values(length);
  for (float& value : values) value = uniform(random);
  return values;
}

OptimizerSpec SpecOf(const OptimizerCase& c) {
  return {.kind = c.kind,
          .momentum = 0.75,
          .beta1 = 0.875,
          .beta2 = 0.96875,
          .epsilon = 0x1p-20,
          .weight_decay = c.weight_decay,
          .trust_coefficient = 1};
}

class OptimizerContractTest : public testing::TestWithParam<OptimizerCase> {
 protected:
  OptimizerContractTest() : optimizer_(std::move(MakeOptimizer(SpecOf(GetParam()))).value()) {}

  Arrays Start(size_t length) const {
    return {.masters = Draw(length, 1),
            .slots = std::vector<std::vector<float>>(optimizer_->slot_count(),
                                                     std::vector<float>(length))};
  }

  void Apply(const Update& update, std::span<const float> sum, Arrays& arrays, size_t offset,
             size_t length) const {
    std::vector<std::span<float>> slots;
    for (auto& slot : arrays.slots) slots.push_back(std::span(slot).subspan(offset, length));
    optimizer_->Apply(update, sum.subspan(offset, length),
                      std::span(arrays.masters).subspan(offset, length), slots);
  }
  void Apply(const Update& update, std::span<const float> sum, Arrays& arrays) const {
    Apply(update, sum, arrays, 0, sum.size());
  }

  // Returns arrays of LENGTH values to which three updates with random gradients were applied.
  Arrays WithHistory(size_t length) const {
    Arrays arrays = Start(length);
    for (uint32_t t = 1; t <= 3; ++t) {
      Apply({.learning_rate = 0.1f, .number = t}, Draw(length, 100 + t), arrays);
    }
    return arrays;
  }

  const std::unique_ptr<const Optimizer> optimizer_;
};

TEST_P(OptimizerContractTest, HasTheSlotsOfItsFormula) {
  EXPECT_EQ(optimizer_->slot_count(), GetParam().slot_count);
  EXPECT_EQ(optimizer_->slot_count() > 0, Traits(GetParam().kind).has_slots);
  EXPECT_EQ(optimizer_->reads_norms(), Traits(GetParam().kind).reads_norms);
}

TEST_P(OptimizerContractTest, UpdatesAnEmptyShard) {
  Arrays empty = Start(0);
  Apply({.learning_rate = 1}, {}, empty);
  EXPECT_EQ(empty, Start(0));
}

TEST_P(OptimizerContractTest, FirstUpdateMovesAgainstTheGradient) {
  Arrays arrays = Start(2);
  arrays.masters = {0, 0};
  Apply({.learning_rate = 0.1f}, std::vector<float>{1, -1}, arrays);
  EXPECT_LT(arrays.masters[0], 0);
  EXPECT_GT(arrays.masters[1], 0);
}

TEST_P(OptimizerContractTest, ZeroGradientsChangeTheMastersOnlyByWeightDecay) {
  Arrays arrays = Start(kLongest);
  Apply({.learning_rate = 0.1f}, std::vector<float>(kLongest, 0), arrays);
  EXPECT_EQ(arrays == Start(kLongest), GetParam().weight_decay == 0);
}

TEST_P(OptimizerContractTest, AZeroGradientMovesMastersOnlyThroughSlotsAndWeightDecay) {
  const Arrays before = WithHistory(kLongest);
  Arrays after = before;
  Apply({.learning_rate = 0.1f, .number = 4}, std::vector<float>(kLongest, 0), after);
  EXPECT_EQ(after.masters != before.masters,
            GetParam().remembers_gradients || GetParam().weight_decay != 0);
}

TEST_P(OptimizerContractTest, GradientScaleEqualsScalingTheSum) {
  const std::vector<float> sum = Draw(kLongest, 2);
  for (float scale : {1 / 3.0f, 0.25f, 1e-4f}) {
    std::vector<float> scaled = sum;
    for (float& value : scaled) value *= scale;
    Arrays by_scale = WithHistory(kLongest);
    Arrays by_hand = by_scale;
    Apply({.learning_rate = 0.1f, .gradient_scale = scale, .number = 4}, sum, by_scale);
    Apply({.learning_rate = 0.1f, .gradient_scale = 1, .number = 4}, scaled, by_hand);
    EXPECT_EQ(by_scale, by_hand) << "scale " << scale;
  }
}

TEST_P(OptimizerContractTest, TwoCallsOnPartsEqualOneCallUnlessTheFormulaReadsNormsOfTheTensor) {
  for (size_t length = 0; length <= kLongest; ++length) {
    const std::vector<float> sum = Draw(length, 3);
    const Update update = {.learning_rate = 0.1f, .gradient_scale = 0.5f, .number = 4};
    const Arrays before = WithHistory(length);
    Arrays whole = before;
    Apply(update, sum, whole);
    for (size_t cut = 0; cut <= length; ++cut) {
      Arrays parts = before;
      Apply(update, sum, parts, 0, cut);
      Apply(update, sum, parts, cut, length - cut);
      const bool divided = cut > 0 && cut < length;
      ASSERT_EQ(parts == whole, !divided || !optimizer_->reads_norms())
          << "cut at " << cut << " of " << length;
    }
  }
}

TEST_P(OptimizerContractTest, MeasuredPartsEqualOneCall) {
  if (!optimizer_->reads_norms()) GTEST_SKIP() << "the optimizer reads no norms";
  const std::vector<float> sum = Draw(kLongest, 3);
  Update update = {.learning_rate = 0.1f, .gradient_scale = 0.5f, .number = 4};
  const Arrays before = WithHistory(kLongest);
  Arrays whole = before;
  Apply(update, sum, whole);
  for (size_t cut = 0; cut <= kLongest; ++cut) {
    Arrays parts = before;
    const std::pair<size_t, size_t> ranges[] = {{0, cut}, {cut, kLongest - cut}};
    SquareSums sums;
    for (const auto& [offset, length] : ranges) {
      std::vector<std::span<float>> slots;
      for (auto& slot : parts.slots) slots.push_back(std::span(slot).subspan(offset, length));
      sums += optimizer_->Measure(update, std::span(sum).subspan(offset, length),
                                  std::span(parts.masters).subspan(offset, length), slots);
    }
    EXPECT_EQ(parts.masters, before.masters);
    update.measured = sums;
    for (const auto& [offset, length] : ranges) Apply(update, sum, parts, offset, length);
    update.measured.reset();
    for (size_t i = 0; i < kLongest; ++i) {
      ASSERT_NEAR(parts.masters[i], whole.masters[i], 1e-6) << "cut at " << cut;
    }
  }
}

TEST_P(OptimizerContractTest, StateIsInTheSlotsAlone) {
  const std::vector<float> sum = Draw(kLongest, 4);
  const auto another = std::move(MakeOptimizer(SpecOf(GetParam()))).value();
  Arrays one = WithHistory(kLongest);
  Arrays other = one;
  Apply({.learning_rate = 0.1f, .number = 4}, sum, one);
  std::vector<std::span<float>> slots(other.slots.begin(), other.slots.end());
  another->Apply({.learning_rate = 0.1f, .number = 4}, sum, other.masters, slots);
  EXPECT_EQ(one, other);
}

TEST_P(OptimizerContractTest, FindsTheMinimumOfAConvexFunction) {
  // Minimizes f(x) = sum of steepness * (x - bottom)^2 / 2, starting from x = 0.
  constexpr size_t kCount = 20;
  const std::vector<float> bottom = Draw(kCount, 5);
  const float rate = GetParam().bowl_rate;
  const double decay = GetParam().weight_decay;
  Arrays arrays = Start(kCount);
  std::fill(arrays.masters.begin(), arrays.masters.end(), 0.0f);
  for (uint64_t t = 1; t <= 2000; ++t) {
    std::vector<float> gradient(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      gradient[i] = (0.5f + 0.1f * i) * (arrays.masters[i] - bottom[i]);
    }
    Apply({.learning_rate = rate / (1 + t / 200), .number = t}, gradient, arrays);
  }
  for (size_t i = 0; i < kCount; ++i) {
    // Weight decay that is part of the gradient moves the minimum from `bottom` to `drawn`.
    // Decoupled weight decay moves the minimum by a smaller distance.
    const double steepness = 0.5 + 0.1 * i;
    const double drawn = bottom[i] * steepness / (steepness + decay);
    const bool decoupled = GetParam().decoupled_decay;
    EXPECT_NEAR(arrays.masters[i], decoupled ? bottom[i] : drawn, decoupled ? 0.01 + decay : 0.01);
  }
}

TEST_P(OptimizerContractTest, TenUpdatesGiveTheRecordedValues) {
  Arrays arrays = Start(3);
  arrays.masters = {1, -2, 0.5f};
  for (int t = 1; t <= 10; ++t) {
    std::vector<float> sum;
    for (int i = 0; i < 3; ++i) sum.push_back(((t * 7 + i * 3) % 11 - 5) / 4.0f);
    Apply({.learning_rate = 0.0625f, .gradient_scale = 0.5f, .number = static_cast<uint64_t>(t)},
          sum, arrays);
  }
  const std::array<double, 3>& want = GetParam().recorded();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(arrays.masters[i], want[i], 1e-6) << "value " << i;
}

// Applies the largest gradients that Judge accepts, in both directions, with the smallest and the
// largest rate and weight decay.
TEST_P(OptimizerContractTest, ExtremeGradientsLeaveFiniteMastersAndSlots) {
  constexpr float kMax = std::numeric_limits<float>::max();
  int saturated_updates = 0;
  for (const float rate : {0.0f, 1.0f, kMax}) {
    for (const double decay : {0.0, 1.0, double{kMax}}) {
      OptimizerSpec spec = SpecOf(GetParam());
      spec.epsilon = std::numeric_limits<float>::min();
      spec.weight_decay = decay;
      const auto optimizer = MakeOptimizer(spec).value();
      Arrays arrays = Start(kLongest);
      const std::vector<std::span<float>> slots(arrays.slots.begin(), arrays.slots.end());
      std::mt19937 random(9);
      for (uint64_t t = 1; t <= 40; ++t) {
        std::vector<float> sum(kLongest);
        for (size_t i = 0; i < kLongest; ++i) {
          const float sign = t > 20 && random() % 2 == 0 ? -1.0f : 1.0f;
          sum[i] = i % 3 == 0 ? 0 : sign * kMax / 2;
        }
        const bool saturated =
            optimizer->Apply({.learning_rate = rate, .number = t}, sum, arrays.masters, slots);
        float largest = 0;
        const auto check = [&](const std::vector<float>& values) {
          for (const float value : values) {
            ASSERT_TRUE(std::isfinite(value)) << "rate " << rate << ", decay " << decay;
            largest = std::max(largest, std::abs(value));
          }
        };
        check(arrays.masters);
        for (const auto& slot : arrays.slots) check(slot);
        ASSERT_EQ(saturated, largest == kMax);
        saturated_updates += saturated ? 1 : 0;
      }
    }
  }
  EXPECT_GT(saturated_updates, 0);
}

INSTANTIATE_TEST_SUITE_P(AllOptimizers, OptimizerContractTest, testing::ValuesIn(OptimizerCases()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace thinwire
