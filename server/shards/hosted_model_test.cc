#include "server/shards/hosted_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "common/memory/live_bytes.h"
#include "common/time/clock.h"
#include "common/time/virtual_time.h"
#include "proto/join_tensors.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

std::vector<GroupUpdate> PlainUpdates() {
  return {{std::make_shared<PlainDescent>(), ConstantRate()}};
}

// Applies one dense push to each shard. Returns, for each shard size, the number of values that
// changed.
std::map<size_t, size_t> MovedByOnePush(const HostedModel& model) {
  std::map<size_t, size_t> moved;
  for (const auto& host : model.hosts()) {
    const size_t count = host->value_count();
    host->Post([&moved, count](Shard& shard) {
      const FakeWorker worker;
      shard.Apply(SeedEvent{Fp32Payload(std::vector<float>(count))});
      shard.Apply(worker.Join());
      shard.Apply(worker.Read(0));
      PushEvent push = worker.PushNothing(0);
      push.examples = 1;
      push.payload = Fp32Payload(std::vector<float>(count, 1.0f));
      shard.Apply(push);
      const auto masters = shard.masters();
      moved[count] = count - static_cast<size_t>(std::ranges::count(masters, 0.0f));
    });
  }
  model.Finish();
  return moved;
}

TEST(HostedModelTest, ShardsOfVectorsHaveNoSelection) {
  VirtualTime strands;
  const auto updates = PlainUpdates();
  StreamTable streams(1);
  Counters counters;
  Journal journal;
  SteadyClock clock;
  ShardOptions options;
  options.sparse_updates.selection_density = 0.02;
  const HostedModel model(Partition::Make({{"w", {20, 10}}, {"b", {30}}}, 0, 1).value(),
                          ServerId{0}, options,
                          {updates, strands, streams, counters, journal, clock});
  EXPECT_EQ(MovedByOnePush(model), (std::map<size_t, size_t>{{200, 4}, {30, 30}}));
}

// Returns the smallest budget for a model that needs STATE_BYTES in SHARD_COUNT shards.
uint64_t BudgetFor(uint64_t state_bytes, size_t shard_count) {
  // The result is small enough for fixed windows, of which the one of a connection is the largest.
  const MemoryPlan plan{.budget_bytes = MemoryPlan::kProgramBytes};
  return MemoryPlan::kProgramBytes + plan.ConnectionBytes(shard_count, 1) + state_bytes;
}

// Joins with a model of one tensor of SHAPE at a server with a budget of BUDGET_BYTES in MEMORY.
absl::Status Join(const std::vector<int64_t>& shape, uint64_t budget_bytes,
                  std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  VirtualTime strands;
  const auto updates = PlainUpdates();
  StreamTable streams(1);
  Counters counters;
  Journal journal;
  SteadyClock clock;
  FrameBudget frames;
  ModelSlot slot(ServerId{0}, 1, {.memory = memory}, {.budget_bytes = budget_bytes}, frames,
                 {updates, strands, streams, counters, journal, clock});
  JoinRequest request;
  request.set_servers(1);
  const std::vector<TensorShape> tensors = {{"w", shape}};
  SetTensors(tensors, request);
  request.set_partition_hash(Partition::Make(tensors, 0, 1)->hash());
  const absl::Status status = slot.MakeOrCompare(request);
  EXPECT_EQ(slot.Get() != nullptr, status.ok());
  return status;
}

TEST(ModelSlotTest, RefusesAModelThatNeedsTooMuchMemoryBeforeItAllocates) {
  const size_t before = LiveBytes();
  const absl::Status status = Join({100'000, 100'000}, 1'000'000'000);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "a worker must not try again";
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("model: needs too much memory on server 0 (expected at most "
                                 "1000000000 bytes, its --memory_budget or else the memory that "
                                 "was free at its start, got 12"));
  EXPECT_LT(LiveBytes(), before + 100'000);
}

TEST(ModelSlotTest, AcceptsAModelThatNeedsExactlyTheBudget) {
  const Partition partition = Partition::Make({{"w", {20, 10}}}, 0, 1).value();
  const uint64_t needed =
      HostedModel::NeededBytes(partition, ServerId{0}, ShardOptions(), PlainUpdates());
  EXPECT_TRUE(Join({20, 10}, BudgetFor(needed, 1)).ok());
  EXPECT_FALSE(Join({20, 10}, BudgetFor(needed, 1) - 1).ok());
}

TEST(ModelSlotTest, RefusesAModelIfTheMemoryIsUsedUp) {
  const absl::Status status = Join({20, 10}, 1'000'000'000, std::pmr::null_memory_resource());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("--memory_budget"));
}

TEST(HostedModelTest, NeededBytesIncludesTheObjectsOfManyTinyShards) {
  VirtualTime strands;
  const auto updates = PlainUpdates();
  StreamTable streams(1);
  Counters counters;
  Journal journal;
  SteadyClock clock;
  const size_t before = LiveBytes();
  Partition partition = Partition::Make({{"w", {1000}}}, 1, 1).value();
  const HostedModel model(std::move(partition), ServerId{0}, ShardOptions(),
                          {updates, strands, streams, counters, journal, clock});
  ASSERT_EQ(model.hosts().size(), 1000u);
  EXPECT_LT(LiveBytes() - before,
            HostedModel::NeededBytes(model.partition(), ServerId{0}, ShardOptions(), updates));
}

}  // namespace
}  // namespace thinwire
