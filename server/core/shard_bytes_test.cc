// Compares ShardBytes() with the memory that shards really allocate.
#include "server/core/shard_bytes.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/memory/live_bytes.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

PushEvent DensePush(const FakeWorker& worker, uint64_t step, const std::vector<float>& values) {
  PushEvent push = worker.PushNothing(step);
  push.examples = 1;
  push.payload = Fp32Payload(values);
  return push;
}

// Returns the memory of a shard after a few updates, including the newest parameters that a slow
// reader holds.
size_t UsedBytes(const ShardOptions& options, const Optimizer& optimizer) {
  const Schedule schedule = ConstantRate();
  const FakeWorker worker;
  const std::vector<float> values(options.value_count, 1.5f);
  const size_t before = LiveBytes();
  Shard shard(options, optimizer, schedule);
  shard.Apply(SeedEvent{Fp32Payload(values)});
  shard.Apply(worker.Join());
  shard.Apply(worker.Read(0));
  ByteChain masters, encoded;
  DeltaChain full;
  std::optional<ShardSnapshot> snapshot;
  for (uint64_t step = 0; step < 4; ++step) {
    shard.Apply(DensePush(worker, step, values));
    EXPECT_EQ(shard.version(), Version{step + 1});
    if (options.checkpointed && step == 1) snapshot = shard.Save();
    if (options.publish.has_value()) {
      full = shard.Deltas(std::nullopt);
    } else if (step % 2 == 0) {
      masters = shard.Encoded(CodecId::kFp32);
    }
  }
  return LiveBytes() - before;
}

TEST(ShardBytesTest, IsAboveTheMemoryOfAShardAndBelowTwiceThatMemory) {
  const SparseUpdateSpec sparse_updates[] = {
      {},
      {.lazy_slots = true},
      {.selection_density = 1.0},
      {.lazy_slots = true, .selection_density = 1.0},
      {.selection_density = 1.0, .unselected_owner = UnselectedOwner::kWorkers},
  };
  const std::optional<PublishOptions> published[] = {
      std::nullopt, PublishOptions{}, PublishOptions{.codec = CodecSpec{.id = CodecId::kBf16}}};
  std::vector<std::pair<std::optional<PublishOptions>, bool>> forms;
  for (const auto& publish : published) {
    forms.emplace_back(publish, false);
    forms.emplace_back(publish, true);
  }
  int checked_count = 0;
  const OptimizerSpec specs[] = {{.kind = OptimizerKind::kSgd},
                                 {.kind = OptimizerKind::kMomentum},
                                 {.kind = OptimizerKind::kAdam},
                                 {.kind = OptimizerKind::kLars},
                                 {.kind = OptimizerKind::kAdam, .parameter_average = 0.99}};
  for (const OptimizerSpec& spec : specs) {
    const auto optimizer = MakeOptimizer(spec).value();
    for (const SparseUpdateSpec& sparse : sparse_updates) {
      if (sparse.lazy_slots && optimizer->reads_norms()) continue;
      for (const auto& [publish, checkpointed] : forms) {
        const ShardOptions options = {.value_count = 50'000,
                                      .rule = Rule::Sync(1),
                                      .sparse_updates = sparse,
                                      .publish = publish,
                                      .checkpointed = checkpointed};
        const size_t used = UsedBytes(options, *optimizer);
        const uint64_t bound = ShardBytes(options, *optimizer);
        EXPECT_LE(used, bound) << spec << ", " << sparse << ", deltas " << publish.has_value()
                               << ", checkpointed " << checkpointed;
        EXPECT_GE(2 * used, bound) << spec << ", " << sparse << ", deltas " << publish.has_value();
        ++checked_count;
      }
    }
  }
  EXPECT_EQ(checked_count, 138);
}

TEST(ShardBytesTest, CountsTheMeanSquares) {
  const auto optimizer = MakeOptimizer({}).value();
  for (const bool checkpointed : {false, true}) {
    ShardOptions options = {.value_count = 50'000,
                            .rule = Rule::Async(1),
                            .publish = PublishOptions{},
                            .checkpointed = checkpointed};
    options.staleness = {.policy = StalenessPolicy::kDcasgd, .decay = 0.5};
    const size_t used = UsedBytes(options, *optimizer);
    const uint64_t bound = ShardBytes(options, *optimizer);
    EXPECT_LE(used, bound);
    options.staleness.decay = 0;
    const uint64_t arrays = checkpointed ? 2 : 1;
    EXPECT_GE(used - UsedBytes(options, *optimizer), arrays * 50'000 * sizeof(float));
    EXPECT_GE(bound - ShardBytes(options, *optimizer), arrays * 50'000 * sizeof(float));
  }
}

TEST(ShardBytesTest, CountsTheObjectsOfATinyShard) {
  const auto optimizer = MakeOptimizer({}).value();
  const ShardOptions options = {.value_count = 1, .rule = Rule::Sync(1)};
  const size_t used = UsedBytes(options, *optimizer);
  EXPECT_GT(used, 500u);
  EXPECT_LE(used, ShardBytes(options, *optimizer));
  ShardOptions many_workers = options;
  many_workers.rule = Rule::Sync(1000);
  EXPECT_GE(ShardBytes(many_workers, *optimizer), 1000 * sizeof(Step));
}

}  // namespace
}  // namespace thinwire
