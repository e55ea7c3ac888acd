#include "experiments/efficiency/server_step.h"

#include <gtest/gtest.h>

namespace thinwire::lab {
namespace {

constexpr double kNanosecond = 1e-9;

// A model of 4 shards on 4 servers, one each.
Partition FourShards() {
  return Partition::Make({{.name = "values", .shape = {40'000, 1}}}, 10'000, 4).value();
}

// 4 workers that compute for 0.3 s and encode for 0.04 s. A shard's push has 1 Mbit and its
// parameters have 2 Mbit; the links have 10 Mbit/s.
ServerStep FourWorkers() {
  return {.workers = 4,
          .compute_seconds = 0.3,
          .encode_seconds = 0.04,
          .push_bytes = 125'000,
          .pull_bytes = 250'000,
          .link = {.bits_per_second = 1e7, .latency = absl::Milliseconds(1)}};
}

TEST(ServerStepTest, WithoutMessagesAStepComputesAndEncodes) {
  ServerStep step = FourWorkers();
  step.push_bytes = 0;
  step.pull_bytes = 0;
  step.link = {};
  EXPECT_NEAR(ServerStepSeconds(step, FourShards()), 0.34, kNanosecond);
}

TEST(ServerStepTest, WithoutOverlapComputingPushingAndPullingAdd) {
  ServerStep step = FourWorkers();
  step.encode_seconds = 0;
  // Every worker sends 3 Mbit and receives 3 Mbit, and then sends and receives 6 Mbit of
  // parameters.
  EXPECT_NEAR(ServerStepSeconds(step, FourShards()), 0.3 + 0.3 + 0.002 + 0.6 + 0.002, 1e-6);
}

TEST(ServerStepTest, OverlapHidesSmallMessagesExceptTheLast) {
  ServerStep step = FourWorkers();
  step.overlap = true;
  step.push_bytes = 0;
  step.pull_bytes = 0;
  // Only the last shard's encoding, push and answer are not hidden.
  EXPECT_NEAR(ServerStepSeconds(step, FourShards()), 0.3 + 0.01 + 4 * 0.001, 1e-6);
}

TEST(ServerStepTest, WithOverlapTheEncoderCanBeTheBottleneck) {
  ServerStep step = FourWorkers();
  step.overlap = true;
  step.push_bytes = 0;
  step.pull_bytes = 0;
  step.link = {};
  step.encode_seconds = 0.4;
  // The first shard is ready 0.05 s after the beginning of the backward pass. The forward pass of
  // 0.1 s begins when all shards are encoded, because it needs the last one first.
  EXPECT_NEAR(ServerStepSeconds(step, FourShards()), 0.05 + 0.4 + 0.1, 1e-6);
}

}  // namespace
}  // namespace thinwire::lab
