#include "worker/trainer/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr double kGuessing = 2.3026;  // ten equally frequent classes

// Returns the symptom after one epoch in which step t has the loss loss_of(t).
template <typename LossOf>
std::string After(uint64_t steps, const LossOf& loss_of,
                  std::optional<double> guessing = kGuessing) {
  DivergenceWatch watch(guessing);
  for (uint64_t t = 0; t < steps; ++t) watch.AddStep(Step{t}, loss_of(t), false);
  watch.FinishEpoch(0);
  return watch.symptom();
}

TEST(GuessingLossTest, IsTheEntropyOfTheLabels) {
  EXPECT_NEAR(*GuessingLoss(std::vector<int32_t>{0, 1, 2, 3}), std::log(4), 1e-12);
  EXPECT_NEAR(*GuessingLoss(std::vector<int32_t>{0, 0, 0, 1}), 0.5623, 1e-4);
  EXPECT_EQ(GuessingLoss(std::vector<int32_t>{5, 5}), 0);
  EXPECT_EQ(GuessingLoss({}), std::nullopt);
}

TEST(DivergenceWatchTest, AHealthyRunHasNoSymptom) {
  EXPECT_EQ(After(1000, [](uint64_t t) { return 2.3 * std::exp(-0.01 * t) + 0.2; }), "");
}

TEST(DivergenceWatchTest, ALossThatIsNotFiniteIsNoticedAtOnceAndNeverForgotten) {
  for (const double loss : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    DivergenceWatch watch(kGuessing);
    watch.AddStep(Step{6}, 1, false);
    EXPECT_FALSE(watch.loss_is_lost());
    watch.AddStep(Step{7}, loss, true);
    EXPECT_TRUE(watch.loss_is_lost());
    EXPECT_EQ(watch.symptom(), "the loss of step 7 is not finite");
    watch.AddStep(Step{8}, loss, true);
    watch.AddStep(Step{9}, 1, false);
    watch.FinishEpoch(0);
    EXPECT_EQ(watch.symptom(), "the loss of step 7 is not finite");
  }
}

TEST(DivergenceWatchTest, ALossThatReturnsToGuessingHasNotFallen) {
  const auto collapse = [](uint64_t t) { return t < 50 ? 2.3 - 0.02 * t : 2.31; };
  EXPECT_THAT(After(500, collapse), HasSubstr("the training loss did not fall (2.31 over the last "
                                              "100 steps"));
}

TEST(DivergenceWatchTest, AShortRunMayEndWhereItBegan) {
  const auto flat = [](uint64_t) { return 2.31; };
  EXPECT_EQ(After(109, flat), "");
  EXPECT_NE(After(110, flat), "");
}

TEST(DivergenceWatchTest, AShortRunMustNotGrowTenfold) {
  EXPECT_THAT(After(5, [](uint64_t t) { return t == 0 ? 2.3 : 1e28; }), HasSubstr("loss grew"));
  EXPECT_EQ(After(5, [](uint64_t t) { return t == 0 ? 2.3 : 9.0; }), "");
}

// The rare class has a large loss in the first step only. The smallest of the first losses is that of
// batches without this class.
TEST(DivergenceWatchTest, ALossThatOnlyFallsHasNotGrownHoweverShortTheRun) {
  const double rare = 0.0079;  // two of 2000 examples
  for (uint64_t steps = 1; steps <= 120; ++steps) {
    EXPECT_EQ(After(
                  steps, [](uint64_t t) { return 0.7 * std::exp(-3.0 * t); }, rare),
              "")
        << steps;
  }
}

TEST(DivergenceWatchTest, ABatchWithARareClassIsNoGrowth) {
  const auto loss_of = [](uint64_t t) { return t == 0 ? 0.69 : t % 5 == 0 ? 0.5 : 1e-6; };
  EXPECT_EQ(After(16, loss_of, 0.0079), "");
}

// A model that was trained before cannot improve much, but is far better than guessing.
TEST(DivergenceWatchTest, AGoodStartNeedNotImprove) {
  EXPECT_EQ(After(1000, [](uint64_t t) { return 0.1 + 0.01 * std::sin(t); }), "");
}

// A model with unfortunate initial values may need long to become as good as guessing.
TEST(DivergenceWatchTest, ALargeLossMayFallSlowly) {
  EXPECT_EQ(After(200, [](uint64_t t) { return 40 - 0.1 * t; }), "");
}

TEST(DivergenceWatchTest, AnEpochWithoutFiniteGradientsIsASymptomUntilALaterEpochHasThem) {
  DivergenceWatch watch(kGuessing);
  for (uint64_t t = 0; t < 3; ++t) watch.AddStep(Step{t}, 1, true);
  watch.FinishEpoch(0);
  EXPECT_THAT(watch.symptom(),
              HasSubstr("every step of epoch 0 had a gradient that is not finite"));
  watch.AddStep(Step{3}, 1, true);
  watch.AddStep(Step{4}, 1, false);
  watch.FinishEpoch(1);
  EXPECT_EQ(watch.symptom(), "");
}

TEST(DivergenceWatchTest, ALossOfAModuleNeedNotFall) {
  const std::optional<double> none;
  EXPECT_EQ(After(
                500, [](uint64_t) { return 0.3; }, none),
            "");
  EXPECT_EQ(After(
                500, [](uint64_t t) { return -5 + 0.01 * t; }, none),
            "")
      << "may be negative";
  EXPECT_EQ(After(
                500, [](uint64_t t) { return t == 0 ? 0.0 : 1.0; }, none),
            "");
  EXPECT_EQ(After(
                5, [](uint64_t t) { return t == 0 ? 2.0 : 199.0; }, none),
            "");
  EXPECT_EQ(After(
                5, [](uint64_t t) { return t == 0 ? 2.0 : 201.0; }, none),
            "the training loss grew (201 over the last 4 steps; 2 in the first step)");
}

TEST(DivergenceWatchTest, AnEpochWithoutStepsIsNoSymptom) {
  EXPECT_EQ(After(0, [](uint64_t) { return 0.0; }), "");
}

}  // namespace
}  // namespace thinwire
