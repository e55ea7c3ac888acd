// ValueAges counts how long the values of a worker's sparse pushes have waited in its residual.
// Age 0: the worker has sent this index in its previous step. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_VALUE_AGES_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_VALUE_AGES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/model/partition.h"

namespace thinwire::lab {

class ValueAges {
 public:
  // PARTITION must outlive this object.
  explicit ValueAges(const Partition& partition)
      : partition_(partition), next_(partition.shard_count()) {}

  // Counts the values of a push of step AT with examples, which the server has accepted, if its codec
  // is sparse.
  void Accepted(ShardId shard, Step at, const CheckedPayload& payload) {
    if (!PayloadIsSparse(payload)) return;
    std::vector<uint32_t>& next = next_[shard.value];
    next.resize(partition_.value_count(shard));
    const auto step = static_cast<uint32_t>(at.value);
    ForEachPayloadEntry(payload, [&](std::span<const uint32_t> indices, std::span<const float>) {
      for (const uint32_t index : indices) {
        const uint32_t age = step - next[index];
        if (age >= counts_.size()) counts_.resize(age + 1);
        ++counts_[age];
        next[index] = step + 1;
      }
    });
  }

  // Returns the number of sent values of each age, from 0.
  const std::vector<uint64_t>& counts() const { return counts_; }

 private:
  const Partition& partition_;
  // For each shard and index, the step after the last one that has sent the index. Empty before the
  // first sparse push of the shard.
  std::vector<std::vector<uint32_t>> next_;
  std::vector<uint64_t> counts_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_VALUE_AGES_H_
