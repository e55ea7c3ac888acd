#include "server/edge/hosted_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <vector>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

// Applies one dense push to each shard. Returns, for each shard size, the number of values that
// changed.
std::map<size_t, size_t> MovedByOnePush(const HostedModel& model, boost::asio::thread_pool& pool) {
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
  pool.join();
  return moved;
}

TEST(HostedModelTest, ShardsOfVectorsHaveNoSelection) {
  boost::asio::thread_pool pool(1);
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  StreamTable streams(1);
  Counters counters;
  ShardOptions options;
  options.sparse_updates.selection_density = 0.02;
  const HostedModel model(Partition::Make({{"w", {20, 10}}, {"b", {30}}}, 0, 1).value(),
                          ServerId{0}, options, {optimizer, schedule, pool, streams, counters});
  EXPECT_EQ(MovedByOnePush(model, pool), (std::map<size_t, size_t>{{200, 4}, {30, 30}}));
}

}  // namespace
}  // namespace thinwire
