#include "server/core/update/store.h"

#include <gtest/gtest.h>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

// An optimizer that computes master -= slot, slot += gradient. The masters reveal whether slots are
// initially zero and keep their values between updates.
class SlottedOptimizer final : public Optimizer {
 public:
  SlottedOptimizer() : Optimizer({}, 1) {}
  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    for (size_t i = 0; i < sum.size(); ++i) {
      masters[i] -= slots[0][i];
      slots[0][i] += update.gradient_scale * sum[i];
    }
    return false;
  }
};

void Fold(Accumulator& accumulator, uint32_t examples, uint32_t late_examples, float value) {
  accumulator.Fold({WorkerId{0}, examples, late_examples, Fp32Payload({value})});
}

TEST(StoreTest, OnlyTheFirstSeedCounts) {
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  Store store(2, 0, optimizer, schedule);
  EXPECT_FALSE(store.seeded());
  store.Seed(Fp32Payload({1, 2}));
  store.Seed(Fp32Payload({3, 4}));
  EXPECT_TRUE(store.seeded());
  EXPECT_EQ(store.version(), Version{0});
  EXPECT_EQ(std::vector<float>(store.masters().begin(), store.masters().end()),
            (std::vector<float>{1, 2}));
}

TEST(StoreTest, AnAverageBeginsWithTheInitialValues) {
  const auto optimizer = MakeOptimizer({.parameter_average = 0.9}).value();
  const Schedule schedule = ConstantRate();
  Store store(2, 0, *optimizer, schedule);
  store.Seed(Fp32Payload({11, 22}));
  const auto averages = [&] {
    return std::vector<float>(store.averages().begin(), store.averages().end());
  };
  EXPECT_EQ(averages(), (std::vector<float>{11, 22}));
  Accumulator accumulator(2);
  accumulator.Fold({WorkerId{0}, 1, 0, Fp32Payload({11, 0})});
  store.Apply(accumulator);
  EXPECT_FLOAT_EQ(averages()[0], 2) << "the first decay is 2/11";
  EXPECT_EQ(averages()[1], 22);
}

TEST(StoreTest, AFactorMultipliesTheMean) {
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  Store store(1, 0, optimizer, schedule);
  store.Seed(Fp32Payload({10}));
  Accumulator accumulator(1);
  Fold(accumulator, 2, 2, 8);
  store.Apply(accumulator, 0.25);
  EXPECT_EQ(store.masters()[0], 10 - 0.25f * 8 * 2 / 4);
}

TEST(StoreTest, WithoutAnAverageTheMastersAreRead) {
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  Store store(2, 0, optimizer, schedule);
  store.Seed(Fp32Payload({1, 2}));
  EXPECT_EQ(store.averages().data(), store.masters().data());
}

TEST(StoreTest, LentMastersStayUnchanged) {
  constexpr size_t kCount = 5000;  // more values than Updater passes to one Optimizer::Apply()
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  Store store(kCount, 0, optimizer, schedule);
  store.Seed(Fp32Payload(std::vector<float>(kCount, 10)));
  Accumulator accumulator(kCount);
  const auto update = [&] {
    accumulator.Fold({WorkerId{0}, 1, 0, Fp32Payload(std::vector<float>(kCount, 1))});
    accumulator.Fold({WorkerId{1}, 1, 0, Fp32Payload(std::vector<float>(kCount, 3))});
    store.Apply(accumulator);
  };
  const float* first = store.masters().data();
  update();
  EXPECT_EQ(store.masters().data(), first) << "masters that are not lent are updated in place";
  const std::vector<float> lent(store.masters().begin(), store.masters().end());
  {
    const ByteChain payload = store.Payload();
    EXPECT_EQ(payload, Fp32Payload(lent).bytes());
    update();
    EXPECT_EQ(payload, Fp32Payload(lent).bytes());
    EXPECT_NE(store.masters().data(), first);
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(store.masters()[i], lent[i] + (lent[i] - 10)) << "value " << i;
    }
  }
  store.Payload();
  update();
  EXPECT_EQ(store.masters().data(), first) << "the reader has released the first buffer";
}

TEST(StoreTest, ClearLeavesLentMastersUnchanged) {
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  Store store(2, 0, optimizer, schedule);
  store.Seed(Fp32Payload({1, 2}));
  const ByteChain payload = store.Payload();
  store.Clear();
  EXPECT_EQ(payload, Fp32Payload({1, 2}).bytes());
  EXPECT_EQ(store.Payload(), Fp32Payload({0, 0}).bytes());
  EXPECT_EQ(store.version(), Version{1});
}

TEST(StoreTest, AnUpdateCarriesTheProgressOfTheRun) {
  const Schedule schedule = ConstantRate();
  for (const uint64_t planned_examples : {0, 8}) {
    const RecordingOptimizer optimizer;
    Store store(1, planned_examples, optimizer, schedule);
    store.Seed(Fp32Payload({0}));
    Accumulator accumulator(1);
    for (const uint32_t examples : {6, 6, 6}) {
      accumulator.Fold({WorkerId{0}, examples, 0, Fp32Payload({1})});
      store.Apply(accumulator);
    }
    const auto progress = [&](size_t i) { return optimizer.updates()[i].update.progress; };
    EXPECT_EQ(progress(0), planned_examples == 0 ? 1 : 0)
        << "without a plan the run counts as complete";
    EXPECT_EQ(progress(1), planned_examples == 0 ? 1 : 0.75);
    EXPECT_EQ(progress(2), 1);
  }
}

TEST(StoreTest, TheMeanOfTheRateFactorsMultipliesTheLearningRate) {
  const RecordingOptimizer optimizer;
  const Schedule schedule = ConstantRate();
  Store store(1, 0, optimizer, schedule);
  store.Seed(Fp32Payload({0}));
  Accumulator accumulator(1);
  const auto update = [&](float a, float b) {
    accumulator.Fold({.worker = {0}, .examples = 3, .payload = Fp32Payload({1}), .rate_factor = a});
    accumulator.Fold({.worker = {1},
                      .examples = 1,
                      .late_examples = 4,
                      .payload = Fp32Payload({1}),
                      .rate_factor = b});
    store.Apply(accumulator);
    return optimizer.updates().back().update.learning_rate;
  };
  EXPECT_EQ(update(0.1f, 0.1f), 0.1f);
  EXPECT_EQ(update(0.5f, 0), 0.375f);
  EXPECT_EQ(update(1, 1), 1);
  EXPECT_EQ(update(3e38f, 3e38f), 3e38f);
}

TEST(StoreTest, AnUpdateDividesByTheTotalWeight) {
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  Store store(1, 0, optimizer, schedule);
  store.Seed(Fp32Payload({0}));
  Accumulator accumulator(1);
  Fold(accumulator, 2, 6, 4);
  store.Apply(accumulator);
  EXPECT_EQ(store.masters()[0], -1);
  EXPECT_EQ(store.version(), Version{1});
  EXPECT_EQ(accumulator.count(), 0u);
}

TEST(StoreTest, TheRateFollowsTheExamplesOfEarlierUpdates) {
  const RecordingOptimizer optimizer;
  const Schedule schedule =
      Schedule::Make({.kind = ScheduleKind::kPolynomial, .learning_rate = 1, .power = 1}).value();
  Store store(1, 8, optimizer, schedule);
  Accumulator accumulator(1);
  for (int i = 0; i < 3; ++i) {
    Fold(accumulator, 2, 100, 1);
    store.Apply(accumulator);
  }
  ASSERT_EQ(optimizer.updates().size(), 3u);
  EXPECT_FLOAT_EQ(optimizer.updates()[0].update.learning_rate, 1.0f);
  EXPECT_FLOAT_EQ(optimizer.updates()[1].update.learning_rate, 0.75f);
  EXPECT_FLOAT_EQ(optimizer.updates()[2].update.learning_rate, 0.5f);
  EXPECT_EQ(optimizer.updates()[2].update.number, 3u);
}

TEST(StoreTest, SlotsBeginAtZeroAndPersist) {
  const SlottedOptimizer optimizer;
  const Schedule schedule = ConstantRate();
  Store store(1, 0, optimizer, schedule);
  store.Seed(Fp32Payload({10}));
  Accumulator accumulator(1);
  for (int i = 0; i < 3; ++i) {
    Fold(accumulator, 1, 0, 2);
    store.Apply(accumulator);
  }
  EXPECT_EQ(store.masters()[0], 10 - 0 - 2 - 4);
}

}  // namespace
}  // namespace thinwire
