#include "server/core/update/updater.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr size_t kValues = 3000;
constexpr uint64_t kUpdates = 5;

const SparseUpdateSpec kLazy = {.lazy_slots = true};
const SparseUpdateSpec kSelected = {.selection_density = 0.01};
const SparseUpdateSpec kBoth = {.lazy_slots = true, .selection_density = 0.01};

std::unique_ptr<const Optimizer> Momentum() {
  return MakeOptimizer({.kind = OptimizerKind::kMomentum}).value();
}

CheckedPayload TopK(uint32_t seed) {
  const auto codec = MakeCodec({.id = CodecId::kTopK, .density = 0.02}).value();
  return CheckPayload(ByteChain(Encoded(*codec, Laplace(kValues, seed))), kValues).value();
}

CheckedPayload Fp32(uint32_t seed) { return Fp32Payload(Laplace(kValues, seed)); }

// The masters of one shard. Each round folds the gradients of two workers and applies one update.
class Rounds {
 public:
  explicit Rounds(const Optimizer& optimizer, const SparseUpdateSpec& sparse_updates)
      : accumulator_(kValues, sparse_updates.WantsSparse()),
        updater_(kValues, optimizer, sparse_updates),
        masters_(Gauss(kValues, 1)) {
    updater_.Start(masters_);
  }

  void Round(const CheckedPayload& one, const CheckedPayload& other, double progress = 1) {
    Fold(one, other);
    updater_.Apply(NextUpdate(progress), accumulator_, masters_, masters_);
    accumulator_.Clear();
  }
  // Does the same as Round(), except that the update writes the new masters to a second array
  // instead of overwriting the old masters.
  void RoundInNewArray(const CheckedPayload& one, const CheckedPayload& other) {
    Fold(one, other);
    std::vector<float> elsewhere(kValues, 1e9f);
    updater_.Apply(NextUpdate(), accumulator_, masters_, elsewhere);
    accumulator_.Clear();
    masters_ = elsewhere;
  }

  const std::vector<float>& masters() const { return masters_; }
  std::span<const float> average() const { return updater_.average(); }
  std::span<const uint32_t> selected() const { return updater_.selected(); }

 private:
  void Fold(const CheckedPayload& one, const CheckedPayload& other) {
    accumulator_.Fold({WorkerId{0}, 3, 0, one});
    accumulator_.Fold({WorkerId{1}, 1, 2, other});
  }
  Update NextUpdate(double progress = 1) {
    return {.learning_rate = 0.1f,
            .gradient_scale = 1 / 6.0f,
            .number = ++number_,
            .progress = progress};
  }

  Accumulator accumulator_;
  Updater updater_;
  std::vector<float> masters_;
  uint64_t number_ = 0;
};

std::vector<uint32_t> DifferingIndices(std::span<const float> a, std::span<const float> b) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) indices.push_back(i);
  }
  return indices;
}

TEST(UpdaterTest, LazySlotsMoveOnlyTheUnionOfThePushedEntries) {
  const auto optimizer = Momentum();
  Rounds rounds(*optimizer, kLazy);
  for (uint32_t t = 0; t < kUpdates; ++t) {
    const std::vector<float> before = rounds.masters();
    rounds.Round(TopK(2 * t), TopK(2 * t + 1));
    std::vector<float> pushed = Values(TopK(2 * t));
    const std::vector<float> other = Values(TopK(2 * t + 1));
    for (size_t i = 0; i < kValues; ++i) pushed[i] = pushed[i] != 0 || other[i] != 0;
    EXPECT_EQ(DifferingIndices(rounds.masters(), before),
              DifferingIndices(pushed, std::vector<float>(kValues)));
  }
}

TEST(UpdaterTest, DensePushesWithLazySlotsUpdateLikeDenseSlots) {
  const auto optimizer = Momentum();
  Rounds lazy(*optimizer, kLazy);
  Rounds dense(*optimizer, {});
  for (uint32_t t = 0; t < kUpdates; ++t) {
    // The second worker's payload is sparse in every other round.
    const CheckedPayload other = t % 2 == 0 ? TopK(50 + t) : Fp32(50 + t);
    lazy.Round(Fp32(t), other);
    dense.Round(Fp32(t), other);
    EXPECT_EQ(lazy.masters(), dense.masters());
  }
}

TEST(UpdaterTest, DenseSlotsMoveEveryValueThatEverHadAnEntry) {
  const auto optimizer = Momentum();
  Rounds rounds(*optimizer, {});
  rounds.Round(Fp32(1), Fp32(2));
  const std::vector<float> before = rounds.masters();
  rounds.Round(TopK(3), TopK(4));
  EXPECT_GT(DifferingIndices(rounds.masters(), before).size(), kValues * 9 / 10);
}

TEST(UpdaterTest, ASelectionWithLazySlotsMovesTheSelectedValues) {
  const auto optimizer = Momentum();
  Rounds rounds(*optimizer, kBoth);
  for (uint32_t t = 0; t < kUpdates; ++t) {
    const std::vector<float> before = rounds.masters();
    rounds.Round(TopK(2 * t), t == 3 ? Fp32(1) : TopK(2 * t + 1));
    EXPECT_EQ(rounds.selected().size(), kValues / 100);
    EXPECT_EQ(DifferingIndices(rounds.masters(), before),
              std::vector<uint32_t>(rounds.selected().begin(), rounds.selected().end()));
  }
}

TEST(UpdaterTest, TheSelectionDensityWarmsUpLikeThePushDensity) {
  const auto optimizer = Momentum();
  Rounds rounds(*optimizer,
                {.selection_density = 0.01, .selection_warmup = {.part = 0.5, .first = 0.25}});
  rounds.Round(Fp32(1), Fp32(2), 0);
  EXPECT_EQ(rounds.selected().size(), kValues / 4);
  rounds.Round(Fp32(3), Fp32(4), 0.25);
  EXPECT_EQ(rounds.selected().size(), kValues / 20) << "0.25^.5 * 0.01^.5";
  rounds.Round(Fp32(5), Fp32(6), 0.5);
  EXPECT_EQ(rounds.selected().size(), kValues / 100);
}

TEST(UpdaterTest, ASelectionHasAMinimumSize) {
  const auto optimizer = Momentum();
  Rounds rounds(*optimizer, {.selection_density = 0.0001, .selection_least = 32});
  rounds.Round(Fp32(1), Fp32(2));
  EXPECT_EQ(rounds.selected().size(), 32u);
}

TEST(UpdaterTest, WithoutSlotsLazySlotsDoNotChangeASelection) {
  const PlainDescent optimizer;
  Rounds lazy(optimizer, kBoth);
  Rounds dense(optimizer, kSelected);
  for (uint32_t t = 0; t < kUpdates; ++t) {
    lazy.Round(TopK(2 * t), TopK(2 * t + 1));
    dense.Round(TopK(2 * t), TopK(2 * t + 1));
    EXPECT_EQ(lazy.masters(), dense.masters());
  }
}

TEST(UpdaterTest, TheNewMastersMayLieInAnotherArray) {
  const auto optimizer = Momentum();
  for (const SparseUpdateSpec& sparse_updates : {SparseUpdateSpec(), kLazy, kSelected, kBoth}) {
    Rounds in_place(*optimizer, sparse_updates);
    Rounds elsewhere(*optimizer, sparse_updates);
    for (uint32_t t = 0; t < kUpdates; ++t) {
      in_place.Round(TopK(2 * t), TopK(2 * t + 1));
      elsewhere.RoundInNewArray(TopK(2 * t), TopK(2 * t + 1));
      ASSERT_EQ(in_place.masters(), elsewhere.masters());
    }
  }
}

// Compares the average of every optimizer with the formula in updater.h, in double.
TEST(UpdaterTest, TheAverageIsThatOfAPlainLoop) {
  constexpr double kDecay = 0.75;  // larger than the first decays, 2/11 to 21/30
  int compared_count = 0;
  for (size_t kind = 0; kind < std::size(kOptimizers); ++kind) {
    const auto optimizer = MakeOptimizer({.kind = static_cast<OptimizerKind>(kind),
                                          .weight_decay = 0.125,
                                          .parameter_average = kDecay})
                               .value();
    for (const SparseUpdateSpec& sparse_updates : {SparseUpdateSpec(), kLazy, kSelected, kBoth}) {
      if (sparse_updates.lazy_slots && optimizer->reads_norms()) continue;
      Rounds rounds(*optimizer, sparse_updates);
      std::vector<double> expected(rounds.masters().begin(), rounds.masters().end());
      for (uint32_t t = 1; t <= 50; ++t) {
        if (t % 2 == 0) {
          rounds.RoundInNewArray(TopK(2 * t), TopK(2 * t + 1));
        } else {
          rounds.Round(TopK(2 * t), t % 5 == 0 ? Fp32(t) : TopK(2 * t + 1));
        }
        const double decay = std::min(kDecay, (1.0 + t) / (10.0 + t));
        for (size_t i = 0; i < kValues; ++i) {
          expected[i] = decay * expected[i] + (1 - decay) * rounds.masters()[i];
        }
      }
      ASSERT_EQ(rounds.average().size(), kValues);
      for (size_t i = 0; i < kValues; ++i, ++compared_count) {
        ASSERT_NEAR(rounds.average()[i], expected[i], 2e-6 * (1 + std::abs(expected[i])))
            << kOptimizers[kind].name << ", " << sparse_updates << ", value " << i;
      }
    }
  }
  EXPECT_EQ(compared_count, (9 * 4 + 2 * 2) * kValues);
}

TEST(UpdaterTest, AnAverageDoesNotChangeTheMasters) {
  const auto without = Momentum();
  const auto with =
      MakeOptimizer({.kind = OptimizerKind::kMomentum, .parameter_average = 0.5}).value();
  Rounds plain(*without, {});
  Rounds averaged(*with, {});
  for (uint32_t t = 0; t < kUpdates; ++t) {
    plain.Round(Fp32(t), TopK(t));
    averaged.Round(Fp32(t), TopK(t));
    EXPECT_EQ(plain.masters(), averaged.masters());
  }
  EXPECT_TRUE(plain.average().empty());
}

// Applies LARS and LAMB to a shard of three tensors and compares the masters with separate updates
// of the tensors.
TEST(UpdaterTest, AnOptimizerOfWholeTensorsGetsOneCallPerTensor) {
  const std::vector<size_t> sizes = {1, 1999, 1000};
  for (const OptimizerKind kind : {OptimizerKind::kLars, OptimizerKind::kLamb}) {
    for (const bool in_place : {true, false}) {
      const auto optimizer = MakeOptimizer({.kind = kind, .weight_decay = 0.125}).value();
      Updater updater(kValues, *optimizer, {}, std::pmr::get_default_resource(), sizes);
      std::vector<float> masters = Gauss(kValues, 1);
      std::vector<float> expected = masters;
      std::vector<std::vector<float>> slots(optimizer->slot_count(), std::vector<float>(kValues));
      for (uint64_t number = 1; number <= 3; ++number) {
        // The accumulator keeps a single gradient encoded, so the updater decodes it in blocks.
        const auto seed = static_cast<uint32_t>(number);
        Accumulator accumulator(kValues);
        accumulator.Fold({WorkerId{0}, 1, 0, Fp32(seed)});
        const Update update = {.learning_rate = 0.1f, .number = number};
        std::vector<float> other(kValues);
        std::vector<float>& written = in_place ? masters : other;
        updater.Apply(update, accumulator, masters, written);
        masters = written;
        const std::vector<float> sum = Laplace(kValues, seed);
        size_t first = 0;
        for (const size_t count : sizes) {
          std::vector<std::span<float>> tensor_slots;
          for (auto& slot : slots) tensor_slots.push_back(std::span(slot).subspan(first, count));
          optimizer->Apply(update, std::span(sum).subspan(first, count),
                           std::span(expected).subspan(first, count), tensor_slots);
          first += count;
        }
        EXPECT_EQ(masters, expected) << kind << ", update " << number;
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
