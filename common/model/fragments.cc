#include "common/model/fragments.h"

#include <algorithm>
#include <utility>

namespace thinwire {

std::vector<std::vector<ShardId>> DealFragments(const Partition& partition, uint32_t count) {
  std::vector<std::vector<ShardId>> fragments(count);
  std::vector<uint64_t> total(count);
  for (uint32_t s = 0; s < partition.server_count(); ++s) {
    std::vector<uint64_t> of_server(count);
    std::vector<ShardId> shards = partition.ShardsOf(ServerId{s});
    std::ranges::stable_sort(shards, std::ranges::greater(),
                             [&](ShardId shard) { return partition.value_count(shard); });
    for (const ShardId shard : shards) {
      uint32_t least = 0;
      for (uint32_t f = 1; f < count; ++f) {
        if (std::pair(of_server[f], total[f]) < std::pair(of_server[least], total[least])) {
          least = f;
        }
      }
      fragments[least].push_back(shard);
      of_server[least] += partition.value_count(shard);
      total[least] += partition.value_count(shard);
    }
  }
  for (std::vector<ShardId>& fragment : fragments) std::ranges::sort(fragment);
  return fragments;
}

}  // namespace thinwire
