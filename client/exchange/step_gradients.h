// StepGradients: collects the gradients of the current step and yields the shards to push. All
// workers push the fragments (common/model/fragments.h) in their order, and the shards of a fragment
// in ascending order. A shard is ready when the gradients of all its tensors, or its fragment, are
// ready.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_GRADIENTS_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/encode/gradient.h"
#include "common/base/ids.h"
#include "common/model/partition.h"

namespace thinwire::client {

// Not thread-safe.
class StepGradients {
 public:
  // FRAGMENTS contains each shard once. Both arguments must outlive this object.
  StepGradients(const Partition& partition, const std::vector<std::vector<ShardId>>& fragments);

  // Starts a step in which no gradient is ready yet.
  void Begin();
  // Adds the gradient of TENSOR, which must stay valid until done() returns true. If OWNER is not
  // null, OWNER keeps the gradient alive after that. Call once per tensor and step.
  void Ready(uint32_t tensor, std::span<const float> gradient,
             std::shared_ptr<const void> owner = nullptr);
  // Adds the values that TENSORS, one span per tensor, has for the shards of FRAGMENT. TENSORS must
  // stay valid until done() returns true. Call once per fragment and step, instead of Ready().
  void ReadyFragment(uint32_t fragment, std::span<const std::span<const float>> tensors);

  // Returns the next shard to push. REQUIRES: !done().
  ShardId next() const { return order_[next_]; }
  bool NextIsReady() const { return !done() && missing_of_shard_[next().value] == 0; }
  // Returns the gradient of the shard next() and advances to the following shard. REQUIRES:
  // NextIsReady().
  ShardGradient Take();
  // Returns true if Take() has returned every shard of the step.
  bool done() const { return next_ == order_.size(); }

 private:
  const Partition& partition_;
  const std::vector<std::vector<ShardId>>& fragments_;
  std::vector<ShardId> order_;  // in which the shards are pushed
  std::vector<uint32_t> tensor_count_of_shard_;
  std::vector<std::vector<ShardId>> shards_of_tensor_;

  size_t next_;                             // in order_
  std::vector<uint32_t> missing_of_shard_;  // number of unready tensors of each shard
  std::vector<std::span<const float>> gradients_;
  std::vector<std::shared_ptr<const void>> owners_;  // indexed by tensor
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_GRADIENTS_H_
