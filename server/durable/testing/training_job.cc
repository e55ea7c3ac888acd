#include "server/durable/testing/training_job.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "proto/join_tensors.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/testing/fakes.h"
#include "server/durable/reshard.h"

namespace thinwire {
namespace {

// Matrices that larger and smaller shards divide at different places, vectors that share shards,
// and a scalar.
const std::vector<TensorShape> kTensors = {
    {"w", {30, 20}}, {"b", {13}}, {"v", {7, 11}}, {"c", {}}, {"d", {40}}};

BeginRecord RunOf(uint32_t server_count, uint64_t shard_size) {
  BeginRecord run = {.run = RunId{77}, .generation = Generation{1}};
  run.join.set_job("tiny");
  run.join.set_servers(1);
  SetTensors(kTensors, run.join);
  run.join.mutable_config()->mutable_recovery()->set_durability(Recovery::Durability::checkpoint);
  EXPECT_TRUE(SetPartition(run.join, server_count, shard_size).ok());
  return run;
}

// Returns a number of few bits, so that sums are exact.
float ValueAt(uint32_t tensor, uint64_t position, uint64_t salt) {
  return static_cast<float>((tensor * 31 + position * 7 + salt * 13) % 64) / 64 - 0.5f;
}

std::vector<float> ShardValues(std::span<const Segment> segments, uint64_t salt) {
  std::vector<float> values;
  for (const Segment& segment : segments) {
    for (uint64_t i = 0; i < segment.count; ++i) {
      values.push_back(ValueAt(segment.tensor, segment.offset + i, salt));
    }
  }
  return values;
}

}  // namespace

RandomShard MomentumSetting() {
  RandomShard setting;
  setting.kind = OptimizerKind::kMomentum;
  setting.optimizer = MakeOptimizer({.kind = setting.kind}).value();
  setting.schedule =
      std::make_shared<const Schedule>(Schedule::Make({.learning_rate = 0.125}).value());
  return setting;
}

TrainingJob::TrainingJob(RandomShard setting, uint32_t server_count, uint64_t shard_size)
    : setting_(std::move(setting)),
      run_(RunOf(server_count, shard_size)),
      partition_(PartitionOfJoin(run_.join).value()) {
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    shards_.push_back(MakeShard(ShardId{s}));
    shards_[s]->Apply(
        SeedEvent{Fp32Payload(ShardValues(partition_.segments(ShardId{s}), /*salt=*/0))});
  }
}

TrainingJob::TrainingJob(RandomShard setting, std::span<const Checkpoint> servers)
    : setting_(std::move(setting)),
      run_(servers[0].run),
      partition_(PartitionOfJoin(run_.join).value()),
      shards_(partition_.shard_count()) {
  size_t restored_count = 0;
  for (const Checkpoint& server : servers) {
    for (const MemberRecord& member : server.members) {
      incarnation_ = std::max(incarnation_, member.assigned);
    }
    for (const SavedShard& saved : server.shards) {
      EXPECT_EQ(partition_.server(saved.shard), server.server);
      std::unique_ptr<Shard>& shard = shards_[saved.shard.value];
      shard = MakeShard(saved.shard);
      const absl::Status status = shard->Restore(saved.state);
      EXPECT_TRUE(status.ok()) << status;
      next_ = std::max(next_, saved.state.workers[0].next.value);
      ++restored_count;
    }
  }
  EXPECT_EQ(restored_count, shards_.size());
}

std::unique_ptr<Shard> TrainingJob::MakeShard(ShardId shard) const {
  ShardOptions options = setting_.options;
  options.rule = Rule::Sync(kWorkers, /*ordered_fold=*/true);
  options.value_count = partition_.value_count(shard);
  if (partition_.HoldsVectors(shard)) options.sparse_updates.selection_density = std::nullopt;
  return std::make_unique<Shard>(options, *setting_.optimizer, *setting_.schedule);
}

void TrainingJob::ApplyToAll(const Event& event) {
  for (const auto& shard : shards_) shard->Apply(event);
}

void TrainingJob::Train(uint64_t steps) {
  ++incarnation_;
  std::vector<FakeWorker> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) workers.push_back({WorkerId{w}, incarnation_});
  for (const FakeWorker& worker : workers) ApplyToAll(worker.Join());
  for (const FakeWorker& worker : workers) ApplyToAll(worker.Read(next_));
  for (const uint64_t end = next_ + steps; next_ < end; ++next_) {
    for (const FakeWorker& worker : workers) {
      PushEvent push = worker.PushNothing(next_);
      push.examples = 1 + worker.worker.value;
      for (uint32_t s = 0; s < shards_.size(); ++s) {
        const uint64_t salt = 1 + 2 * next_ + worker.worker.value;
        push.computed_version = shards_[s]->version();
        push.payload = Fp32Payload(ShardValues(partition_.segments(ShardId{s}), salt));
        const Effects effects = shards_[s]->Apply(push);
        EXPECT_EQ(effects.judgement->verdict, Verdict::kAccept);
      }
    }
  }
  for (const FakeWorker& worker : workers) ApplyToAll(worker.Leave());
}

std::vector<Checkpoint> TrainingJob::Save() {
  std::vector<Checkpoint> servers(partition_.server_count());
  for (uint32_t s = 0; s < servers.size(); ++s) {
    servers[s].server = ServerId{s};
    servers[s].run = run_;
    if (incarnation_ != Incarnation{}) {
      for (uint32_t w = 0; w < kWorkers; ++w) {
        servers[s].members.push_back({WorkerId{w}, incarnation_, incarnation_, /*left=*/true});
      }
    }
    for (const ShardId shard : partition_.ShardsOf(ServerId{s})) {
      servers[s].shards.push_back({.shard = shard, .state = shards_[shard.value]->Save()});
    }
  }
  return servers;
}

std::vector<std::vector<float>> TrainingJob::Model(std::span<const float> (Shard::*values_of)()
                                                       const) const {
  std::vector<std::vector<float>> tensors;
  for (const TensorShape& shape : partition_.tensors()) tensors.emplace_back(shape.value_count());
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    size_t at = 0;
    for (const Segment& segment : partition_.segments(ShardId{s})) {
      const auto values = ((*shards_[s]).*values_of)().subspan(at, segment.count);
      std::ranges::copy(
          values, tensors[segment.tensor].begin() + static_cast<std::ptrdiff_t>(segment.offset));
      at += segment.count;
    }
  }
  return tensors;
}

}  // namespace thinwire
