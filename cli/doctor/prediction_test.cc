#include "cli/doctor/prediction.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

CodecCandidate CandidateOf(double bytes, double error) {
  return {.push = "",
          .pull = "",
          .push_cost = {.bytes = bytes, .encode_seconds = 1e-9, .decode_seconds = 2e-9},
          .pull_cost = {.bytes = 2 * bytes, .encode_seconds = 4e-9, .decode_seconds = 8e-9},
          .error = error};
}

// 4 workers and 2 servers: each server decodes the pushes of 4 workers for half of the values.
StepConditions Conditions() {
  return {.value_count = 1'000'000,
          .worker_count = 4,
          .server_count = 2,
          .shard_count = 4,
          .compute = absl::Milliseconds(100),
          .up = 1e6,
          .down = 1e7,
          .round_trip = absl::Milliseconds(3)};
}

double MillisecondsOf(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

TEST(PredictionTest, AStepIsTheSumOfItsParts) {
  const StepPrediction step = Predict(CandidateOf(1, 0), Conditions());
  EXPECT_EQ(step.push_bytes, 1e6);
  EXPECT_EQ(step.pull_bytes, 2e6);
  EXPECT_NEAR(MillisecondsOf(step.encode), 1 + 4.0 / 2, 1e-6);
  EXPECT_NEAR(MillisecondsOf(step.decode), 8 + 2 * 2.0, 1e-6);
  // The upload takes 1 s, and the download of the last shard a fourth of 0.2 s. Two workers share
  // the link of a server.
  EXPECT_NEAR(MillisecondsOf(step.wire), 3 + 2 * 1050, 1e-6);
  EXPECT_EQ(step.log, absl::ZeroDuration());
  EXPECT_NEAR(MillisecondsOf(step.step), 100 + 3 + 2103 + 12, 1e-6);
}

TEST(PredictionTest, MoreServersThanWorkersDoNotMakeAWorkersLinkFaster) {
  StepConditions conditions = Conditions();
  conditions.worker_count = 1;
  EXPECT_NEAR(MillisecondsOf(Predict(CandidateOf(1, 0), conditions).wire), 3 + 1050, 1e-6);
}

TEST(PredictionTest, TheLogHoldsThePushesOfAllWorkers) {
  StepConditions conditions = Conditions();
  conditions.disk = {.bytes_per_second = 1e8, .flush = absl::Milliseconds(5)};
  const StepPrediction step = Predict(CandidateOf(1, 0), conditions);
  EXPECT_NEAR(MillisecondsOf(step.log), 5 + 20, 1e-6);
  EXPECT_NEAR(MillisecondsOf(step.step), 100 + 3 + 2103 + 12 + 25, 1e-6);
}

TEST(PredictionTest, TheMostExactOfTheFastestIsRecommended) {
  const std::vector<CodecCandidate> candidates = {CandidateOf(4, 0), CandidateOf(1, 0.2),
                                                  CandidateOf(1, 0.1), CandidateOf(1, 0.3)};
  std::vector<StepPrediction> predictions(4);
  predictions[0].step = absl::Milliseconds(400);
  predictions[1].step = absl::Milliseconds(100);
  predictions[2].step = absl::Milliseconds(104);
  predictions[3].step = absl::Milliseconds(101);
  EXPECT_EQ(Recommend(candidates, predictions), 2u);
  predictions[2].step = absl::Milliseconds(106);
  EXPECT_EQ(Recommend(candidates, predictions), 1u);
  std::vector<CodecCandidate> with_zeros = candidates;
  with_zeros.push_back(CandidateOf(1, 1));
  predictions.emplace_back().step = absl::Milliseconds(10);
  EXPECT_EQ(Recommend(with_zeros, predictions), 1u) << "the fastest codec sends nothing";
}

}  // namespace
}  // namespace thinwire
