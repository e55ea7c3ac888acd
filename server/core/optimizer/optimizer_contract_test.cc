// What every optimizer promises, whatever its formula.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <random>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

constexpr size_t kLongest = 67;  // past four of the widest vectors

// A shard as an optimizer sees it.
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

class OptimizerContractTest : public testing::TestWithParam<OptimizerSpec> {
 protected:
  OptimizerContractTest() : optimizer_(std::move(MakeOptimizer(GetParam())).value()) {}

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

  // Three updates of random gradients.
  Arrays WithHistory(size_t length) const {
    Arrays arrays = Start(length);
    for (uint32_t t = 1; t <= 3; ++t) {
      Apply({.learning_rate = 0.1f, .number = t}, Draw(length, 100 + t), arrays);
    }
    return arrays;
  }

  OptimizerKind kind() const { return GetParam().kind; }

  const std::unique_ptr<const Optimizer> optimizer_;
};

TEST_P(OptimizerContractTest, HasTheSlotsOfItsFormula) {
  const std::map<OptimizerKind, int> slot_counts = {
      {OptimizerKind::kSgd, 0},  {OptimizerKind::kMomentum, 1}, {OptimizerKind::kNesterov, 1},
      {OptimizerKind::kAdam, 2}, {OptimizerKind::kAdamW, 2},    {OptimizerKind::kAdagrad, 1}};
  EXPECT_EQ(optimizer_->slot_count(), slot_counts.at(kind()));
  EXPECT_EQ(optimizer_->slot_count() > 0, Traits(kind()).has_slots);
}

TEST_P(OptimizerContractTest, AnEmptyShardIsNoTrouble) {
  Arrays empty = Start(0);
  Apply({.learning_rate = 1}, {}, empty);
  EXPECT_EQ(empty, Start(0));
}

TEST_P(OptimizerContractTest, MovesAgainstTheGradientAtFirst) {
  Arrays arrays = Start(2);
  arrays.masters = {0, 0};
  Apply({.learning_rate = 0.1f}, std::vector<float>{1, -1}, arrays);
  EXPECT_LT(arrays.masters[0], 0);
  EXPECT_GT(arrays.masters[1], 0);
}

TEST_P(OptimizerContractTest, NeverGivenAGradientItChangesNothingButByDecay) {
  Arrays arrays = Start(kLongest);
  Apply({.learning_rate = 0.1f}, std::vector<float>(kLongest, 0), arrays);
  EXPECT_EQ(arrays == Start(kLongest), GetParam().weight_decay == 0);
}

TEST_P(OptimizerContractTest, WithoutAGradientOnlyTheMemoryOfGradientsMovesIt) {
  if (GetParam().weight_decay != 0) return;
  const Arrays before = WithHistory(kLongest);
  Arrays after = before;
  Apply({.learning_rate = 0.1f, .number = 4}, std::vector<float>(kLongest, 0), after);
  EXPECT_EQ(after.masters != before.masters, Traits(kind()).has_velocity);
}

TEST_P(OptimizerContractTest, GradientScaleIsExactlyAScale) {
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

TEST_P(OptimizerContractTest, EveryCutIntoTwoCallsEqualsTheWhole) {
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
      ASSERT_EQ(parts, whole) << "cut at " << cut << " of " << length;
    }
  }
}

TEST_P(OptimizerContractTest, KeepsNothingOutsideTheSlots) {
  const std::vector<float> sum = Draw(kLongest, 4);
  const auto another = std::move(MakeOptimizer(GetParam())).value();
  Arrays one = WithHistory(kLongest);
  Arrays other = one;
  Apply({.learning_rate = 0.1f, .number = 4}, sum, one);
  std::vector<std::span<float>> slots(other.slots.begin(), other.slots.end());
  another->Apply({.learning_rate = 0.1f, .number = 4}, sum, other.masters, slots);
  EXPECT_EQ(one, other);
}

TEST_P(OptimizerContractTest, FindsTheBottomOfAConvexBowl) {
  // f(x) = sum of steepness (x - bottom)^2 / 2, from 0 everywhere.
  constexpr size_t kCount = 20;
  const std::vector<float> bottom = Draw(kCount, 5);
  const float rate = kind() == OptimizerKind::kAdagrad ? 1
                     : Traits(kind()).uses_betas       ? 0.02f
                                                       : 0.05f;
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
    // Decay draws the bottom towards zero, AdamW's in a way of its own.
    const double steepness = 0.5 + 0.1 * i;
    const double drawn = bottom[i] * steepness / (steepness + decay);
    EXPECT_NEAR(arrays.masters[i], kind() == OptimizerKind::kAdamW ? bottom[i] : drawn,
                kind() == OptimizerKind::kAdamW ? 0.01 + decay : 0.01);
  }
}

// The results of ten updates in double, each written down from the sums of its paper's formula (the
// moments as sums over all earlier gradients) rather than from the recurrences that the kernels
// use.
std::array<double, 3> RecordedAfterTenUpdates(const OptimizerSpec& spec) {
  static const std::map<std::pair<std::string_view, bool>, std::array<double, 3>> recorded = {
      {{"sgd", false}, {0.960937500000, -2.015625000000, 0.507812500000}},
      {{"momentum", false}, {0.851930916309, -2.098253935575, 0.586900383234}},
      {{"nesterov", false}, {0.849885687232, -2.089315451682, 0.572987787426}},
      {{"adam", false}, {0.803534514911, -2.183485066518, 0.603408805106}},
      {{"adamw", false}, {0.803534514911, -2.183485066518, 0.603408805106}},
      {{"adagrad", false}, {0.927811352546, -2.043112686470, 0.539355898146}},
      {{"sgd", true}, {0.887823800689, -1.862280305977, 0.468834467740}},
      {{"momentum", true}, {0.655510029076, -1.658463281921, 0.476507131964}},
      {{"nesterov", true}, {0.641943205587, -1.612256552603, 0.451682436942}},
      {{"adam", true}, {0.667515346320, -1.867790725342, 0.512416773980}},
      {{"adamw", true}, {0.737088256583, -2.022064577485, 0.561139337322}},
      {{"adagrad", true}, {0.861265660770, -1.899120294228, 0.502605738515}},
  };
  return recorded.at({Traits(spec.kind).name, spec.weight_decay != 0});
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
  const std::array<double, 3> want = RecordedAfterTenUpdates(GetParam());
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(arrays.masters[i], want[i], 1e-6) << "value " << i;
}

std::vector<OptimizerSpec> Specs() {
  std::vector<OptimizerSpec> specs;
  for (size_t kind = 0; kind < std::size(kOptimizers); ++kind) {
    for (double decay : {0.0, 0.125}) {
      specs.push_back({.kind = static_cast<OptimizerKind>(kind),
                       .momentum = 0.75,
                       .beta1 = 0.875,
                       .beta2 = 0.96875,
                       .epsilon = 0x1p-20,
                       .weight_decay = decay});
    }
  }
  return specs;
}

INSTANTIATE_TEST_SUITE_P(AllOptimizers, OptimizerContractTest, testing::ValuesIn(Specs()),
                         [](const auto& param) {
                           const OptimizerSpec& spec = param.param;
                           return std::string(Traits(spec.kind).name) +
                                  (spec.weight_decay == 0 ? "" : "WithDecay");
                         });

}  // namespace
}  // namespace thinwire
