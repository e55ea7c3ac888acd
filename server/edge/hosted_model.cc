#include "server/edge/hosted_model.h"

#include <optional>

namespace thinwire {

HostedModel::HostedModel(Partition partition, ServerId self, ShardOptions options,
                         const Optimizer& optimizer, const Schedule& schedule,
                         boost::asio::thread_pool& pool)
    : partition_(std::move(partition)), by_shard_(partition_.shard_count()) {
  const std::optional<double> density = options.thinning.selection_density;
  for (ShardId shard : partition_.ShardsOf(self)) {
    options.value_count = partition_.value_count(shard);
    options.thinning.selection_density = partition_.HoldsVectors(shard) ? std::nullopt : density;
    hosts_.push_back(std::make_unique<ShardHost>(shard, options, optimizer, schedule, pool));
    by_shard_[shard.value] = hosts_.back().get();
  }
}

}  // namespace thinwire
