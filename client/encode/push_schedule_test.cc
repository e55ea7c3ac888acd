#include "client/encode/push_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace thinwire::client {
namespace {

const CodecSpec kSparse = {.id = CodecId::kTopK, .density = 0.001, .values = CodecId::kFp8E5m2};

TEST(PushScheduleTest, WithoutAWarmUpEveryStepHasTheSameCodec) {
  const PushSchedule schedule = *PushSchedule::Make(kSparse, {}, 100);
  for (const uint64_t step : {0, 1, 99, 100, 1000}) EXPECT_EQ(schedule.At(Step{step}), kSparse);
  EXPECT_EQ(PushSchedule::Make(kSparse, {}, 0)->At(Step{7}), kSparse) << "a run of unknown length";
}

TEST(PushScheduleTest, DensityFallsByTheSameFactorInEveryStep) {
  const PushSchedule schedule = *PushSchedule::Make(kSparse, {.density = {.part = 0.5}}, 100);
  EXPECT_DOUBLE_EQ(schedule.At(Step{0}).density, 0.1);
  EXPECT_NEAR(schedule.At(Step{25}).density, 0.01, 1e-12);
  for (uint64_t step = 0; step < 50; ++step) {
    EXPECT_NEAR(schedule.At(Step{step + 1}).density / schedule.At(Step{step}).density,
                std::pow(0.01, 1.0 / 50), 1e-9);
    EXPECT_EQ(schedule.At(Step{step}).values, kSparse.values);
  }
  for (const uint64_t step : {50, 99, 100, 1000}) EXPECT_EQ(schedule.At(Step{step}), kSparse);
}

// A density that falls from 10 % to 0.1 % over a fifth of the run averages 0.51 % over the run
// (docs/sparse_training.md).
TEST(PushScheduleTest, MeanDensityIsTheIntegralOfTheFall) {
  const PushSchedule schedule = *PushSchedule::Make(kSparse, {.density = {.part = 0.2}}, 10000);
  double sum = 0;
  for (uint64_t step = 0; step < 10000; ++step) sum += schedule.At(Step{step}).density;
  const double fall = (0.1 - 0.001) / std::log(100.0);
  EXPECT_NEAR(sum / 10000, 0.2 * fall + 0.8 * 0.001, 1e-5);
  EXPECT_NEAR(sum / 10000, 0.0051, 1e-4);
}

TEST(PushScheduleTest, TheFirstPartHasItsOwnCodec) {
  const PushWarmup warmup = {.first_part = 0.2, .first = {.id = CodecId::kFp8E5m2}};
  const PushSchedule schedule = *PushSchedule::Make(kSparse, warmup, 100);
  EXPECT_EQ(schedule.At(Step{0}).id, CodecId::kFp8E5m2);
  EXPECT_EQ(schedule.At(Step{19}).id, CodecId::kFp8E5m2);
  EXPECT_EQ(schedule.At(Step{20}), kSparse);
}

TEST(PushScheduleTest, ASparseFirstPartHasTheDensityOfTheStep) {
  const PushWarmup warmup = {
      .density = {.part = 1}, .first_part = 0.5, .first = {.id = CodecId::kTopK, .density = 1}};
  const PushSchedule schedule = *PushSchedule::Make({.density = 0.001}, warmup, 100);
  EXPECT_NEAR(schedule.At(Step{25}).density, std::pow(0.1, 0.75) * std::pow(0.001, 0.25), 1e-12);
  EXPECT_EQ(schedule.At(Step{50}).id, CodecId::kFp32);
}

TEST(PushScheduleTest, TheDensityNeverExceedsOne) {
  const PushSchedule schedule = *PushSchedule::Make({.id = CodecId::kTopK, .density = 1},
                                                    {.density = {.part = 1, .first = 1}}, 7);
  for (uint64_t step = 0; step < 8; ++step) EXPECT_LE(schedule.At(Step{step}).density, 1);
}

TEST(PushScheduleTest, InvalidFractionsAndCodecsAreRefused) {
  const auto error = [](const CodecSpec& push, const PushWarmup& warmup, uint64_t steps) {
    return std::string(PushSchedule::Make(push, warmup, steps).status().message());
  };
  EXPECT_EQ(error(kSparse, {.density = {.part = 1.5}}, 9),
            "density_warmup: not a fraction of the run (expected 0 to 1, got 1.5)");
  EXPECT_NE(error(kSparse, {.first_part = std::numeric_limits<double>::quiet_NaN()}, 9), "");
  EXPECT_EQ(error(kSparse, {.density = {.part = 0.5}}, 0),
            "density_warmup 0.5: length of the run unknown (expected planned steps, got 0)");
  EXPECT_NE(error(kSparse, {.density = {.part = 0.5, .first = 0}}, 9), "");
  EXPECT_NE(error({.id = CodecId::kTopK, .density = 2}, {}, 9), "");
  const CodecSpec nested = {.id = CodecId::kTopK, .values = CodecId::kTopK};
  EXPECT_NE(error(kSparse, {.first_part = 0.5, .first = nested}, 9), "");
}

}  // namespace
}  // namespace thinwire::client
