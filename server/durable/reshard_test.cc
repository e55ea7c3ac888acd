#include "server/durable/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/memory/array_bytes.h"
#include "server/core/testing/random_events.h"
#include "server/durable/fresh_job.h"
#include "server/durable/testing/random_server.h"
#include "server/durable/testing/training_job.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

std::vector<Checkpoint> Resharded(std::span<const Checkpoint> servers, uint32_t server_count,
                                  uint64_t shard_size) {
  absl::StatusOr<std::vector<Checkpoint>> made = Reshard(servers, server_count, shard_size);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : std::vector<Checkpoint>();
}

TEST(ReshardTest, OtherServersAndBackGiveTheSameBits) {
  int delta_count = 0, remainder_count = 0, lazy_count = 0, average_count = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SeededRandom random(seed);
    const RandomShard setting = DrawShard(random, 1);
    const auto server_count = static_cast<uint32_t>(1 + random.Below(4));
    const uint64_t shard_size = 50 + random.Below(500);
    TrainingJob job(setting, server_count, shard_size);
    job.Train(3 + random.Below(5));
    // The first conversion drops what no conversion keeps.
    std::vector<Checkpoint> before = Resharded(job.Save(), server_count, shard_size);
    const std::vector<Checkpoint> other =
        Resharded(before, static_cast<uint32_t>(1 + random.Below(5)), 30 + random.Below(700));
    const std::vector<Checkpoint> after = Resharded(other, server_count, shard_size);
    for (Checkpoint& server : before) server.run.generation = Generation{4};
    ASSERT_EQ(after, before) << "seed " << seed;
    for (const SavedShard& saved : after[0].shards) {
      delta_count += saved.state.published.has_value();
      remainder_count += !saved.state.store.updater.remainder.empty();
      lazy_count += !saved.state.store.updater.last.empty();
      average_count += !saved.state.store.updater.average.empty();
    }
  }
  EXPECT_GT(delta_count, 0);
  EXPECT_GT(remainder_count, 0);
  EXPECT_GT(lazy_count, 0);
  EXPECT_GT(average_count, 0);
}

TEST(ReshardTest, MeanSquaresAreCutAsTheMasters) {
  TrainingJob job(MomentumSetting(), 2, 100);
  job.Train(3);
  std::vector<Checkpoint> saved = job.Save();
  for (Checkpoint& server : saved) {
    for (SavedShard& shard : server.shards) shard.state.mean_squares = shard.state.store.masters;
  }
  int checked_count = 0;
  for (const Checkpoint& server : Resharded(saved, 3, 64)) {
    for (const SavedShard& shard : server.shards) {
      EXPECT_EQ(shard.state.mean_squares, shard.state.store.masters);
      ++checked_count;
    }
  }
  EXPECT_GT(checked_count, 3);
  ShardSnapshot& first = saved[0].shards[0].state;
  first.mean_squares = first.store.masters.Sub(0, sizeof(float));
  EXPECT_THAT(std::string(Reshard(saved, 3, 64).status().message()), HasSubstr("mean_squares"));
}

TEST(ReshardTest, AJobOnOtherServersTrainsOnWithTheSameBits) {
  RandomShard setting = MomentumSetting();
  setting.optimizer = MakeOptimizer({.kind = setting.kind, .parameter_average = 0.75}).value();
  TrainingJob undisturbed(setting, 2, 100);
  undisturbed.Train(20);
  TrainingJob first(setting, 2, 100);
  first.Train(8);
  std::vector<Checkpoint> saved = first.Save();
  const std::vector<std::pair<uint32_t, uint64_t>> cuts = {{3, 64}, {1, 500}, {5, 0}};
  for (const auto& [server_count, shard_size] : cuts) {
    const std::vector<Checkpoint> made = Resharded(saved, server_count, shard_size);
    ASSERT_EQ(made.size(), server_count);
    TrainingJob job(setting, made);
    job.Train(4);
    saved = job.Save();
  }
  const TrainingJob last(setting, saved);
  EXPECT_EQ(last.Masters(), undisturbed.Masters());
  EXPECT_EQ(last.Averages(), undisturbed.Averages());
  EXPECT_NE(last.Averages(), last.Masters());
}

TEST(ReshardTest, WorkersHaveLeftAndTheRunGoesOnUnderTheNextGeneration) {
  TrainingJob job(MomentumSetting(), 2, 100);
  job.Train(6);
  std::vector<Checkpoint> servers = job.Save();
  servers[1].members[1].assigned = Incarnation{9};
  servers[1].run.generation = Generation{5};
  const std::vector<Checkpoint> made = Resharded(servers, 3, 100);
  for (const Checkpoint& server : made) {
    EXPECT_EQ(server.run.run, servers[0].run.run);
    EXPECT_EQ(server.run.generation, Generation{6});
    EXPECT_EQ(server.run.join.servers(), 3u);
    EXPECT_EQ(server.run.join.config().servers(), 3u);
    EXPECT_EQ(PartitionOfJoin(server.run.join)->hash(), server.run.join.partition_hash());
    EXPECT_EQ(server.members[1].assigned, Incarnation{9});
    EXPECT_TRUE(server.members[0].left);
    EXPECT_EQ(server.next, 1u);
    for (const SavedShard& saved : server.shards) {
      EXPECT_FALSE(saved.state.open);
      EXPECT_EQ(saved.state.frontier, Step{6});
      EXPECT_EQ(saved.state.store.version, Version{6});
      EXPECT_EQ(saved.state.store.examples, 6u * 3);
      for (const WorkerRecord& row : saved.state.workers) {
        EXPECT_TRUE(row.left);
        EXPECT_EQ(row.next, Step{6});
        EXPECT_FALSE(row.last_push.has_value());
      }
    }
  }
}

TEST(ReshardTest, ShardsOfDifferentStepsGoOnAtTheSmallestStep) {
  TrainingJob job(MomentumSetting(), 2, 100);
  job.Train(6);
  std::vector<Checkpoint> servers = job.Save();
  SavedShard& ahead = servers[1].shards.back();
  ahead.state.frontier = Step{9};
  ahead.state.workers[0].next = Step{8};
  ahead.state.store.version = Version{11};
  ahead.state.store.examples = 40;
  const std::vector<Checkpoint> made = Resharded(servers, 1, 1000);
  size_t mixed_count = 0;
  for (const SavedShard& saved : made[0].shards) {
    EXPECT_EQ(saved.state.frontier, Step{6});
    EXPECT_EQ(saved.state.workers[0].next, Step{6});
    if (saved.state.store.version == Version{6}) continue;
    ++mixed_count;
    EXPECT_EQ(saved.state.store.version, Version{11});
    EXPECT_EQ(saved.state.store.examples, 40u);
  }
  EXPECT_EQ(mixed_count, 1u);
}

TEST(ReshardTest, LazyUpdateNumbersKeepTheirDistanceToTheVersion) {
  RandomShard setting = MomentumSetting();
  setting.options.sparse_updates.lazy_slots = true;
  TrainingJob job(setting, 2, 100);
  job.Train(6);
  std::vector<Checkpoint> servers = job.Save();
  for (SavedShard& saved : servers[1].shards) saved.state.store.version = Version{10};
  const std::vector<Checkpoint> made = Resharded(servers, 1, 10000);
  size_t shifted_count = 0;
  for (const SavedShard& saved : made[0].shards) {
    if (saved.state.store.version != Version{10}) continue;
    std::vector<uint32_t> last(saved.state.store.updater.last.size() / sizeof(uint32_t));
    saved.state.store.updater.last.CopyTo(std::as_writable_bytes(std::span(last)));
    // All entries of server 0 have the number 6, at version 6.
    shifted_count += static_cast<size_t>(std::ranges::count(last, 10u));
  }
  EXPECT_GT(shifted_count, 0u);
}

TEST(ReshardTest, CheckpointsThatDoNotBelongTogetherAreRefused) {
  TrainingJob job(MomentumSetting(), 3, 100);
  job.Train(2);
  const std::vector<Checkpoint> good = job.Save();
  const auto error = [&](const std::vector<Checkpoint>& servers) {
    const auto made = Reshard(servers, 2, 1000);
    EXPECT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), absl::StatusCode::kDataLoss);
    return std::string(made.status().message());
  };
  EXPECT_EQ(error({good[0], good[1]}), "servers: wrong number of checkpoints (expected 3, got 2)");
  EXPECT_THAT(error({good[0], good[2], good[2]}),
              HasSubstr("server 1: another server's checkpoint (expected server 1 of run "));
  std::vector<Checkpoint> bad = good;
  bad[1].run.run = RunId{78};
  EXPECT_THAT(error(bad), HasSubstr("got server 1 of run 000000000000004e)"));
  bad = good;
  bad[2].shards.pop_back();
  EXPECT_THAT(error(bad), HasSubstr("server 2: other shards than the job's (expected "));
  bad = good;
  bad[0].shards[0].state.store.masters = CopyArray(std::as_bytes(std::span("abc")));
  EXPECT_THAT(error(bad), HasSubstr(": masters: wrong size (expected "));
  bad = good;
  bad[0].shards.back().state.store.updater.slots.clear();
  EXPECT_THAT(error(bad), HasSubstr(": wrong number of slots (expected "));
  bad = good;
  bad[0].shards.back().state.store.updater.slots[0] = ByteChain();
  EXPECT_THAT(error(bad), HasSubstr(": slot_0: wrong size (expected "));
  EXPECT_EQ(Reshard(good, 0, 100).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FreshJobTest, AFreshJobHasTheMastersAtStepZero) {
  JobSpec spec;
  spec.server_count = 2;
  spec.rule = Rule::Sync(TrainingJob::kWorkers, /*ordered_fold=*/true);
  spec.optimizer.kind = OptimizerKind::kMomentum;
  TrainingJob job(MomentumSetting(), 2, 100);
  const std::vector<std::vector<float>> masters = job.Masters();
  const std::vector<std::span<const float>> tensors(masters.begin(), masters.end());
  const BeginRecord run = job.Save()[0].run;
  const auto made = FreshJob(spec, run, tensors);
  ASSERT_TRUE(made.ok()) << made.status();
  TrainingJob copy(MomentumSetting(), *made);
  EXPECT_EQ(copy.Masters(), masters);
  job.Train(5);
  copy.Train(5);
  EXPECT_EQ(copy.Masters(), job.Masters());
  EXPECT_THAT(std::string(FreshJob(spec, run, {tensors.data(), 2}).status().message()),
              HasSubstr("model: wrong number of tensors (expected 5, got 2)"));
}

}  // namespace
}  // namespace thinwire
