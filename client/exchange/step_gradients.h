// StepGradients: collects the gradients of the current step and yields the shards to push. All
// workers push shards in ascending order. A shard is ready when the gradients of all its tensors
// are ready.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_GRADIENTS_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_GRADIENTS_H_

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
  // PARTITION must outlive this object.
  explicit StepGradients(const Partition& partition);

  // Starts a step in which no gradient is ready yet.
  void Begin();
  // Adds the gradient of TENSOR, which must stay valid until done() returns true. If OWNER is not
  // null, OWNER keeps the gradient alive after that. Call once per tensor and step.
  void Ready(uint32_t tensor, std::span<const float> gradient,
             std::shared_ptr<const void> owner = nullptr);

  // Returns the next shard to push. REQUIRES: !done().
  ShardId next() const { return ShardId{next_}; }
  bool NextIsReady() const { return !done() && missing_of_shard_[next_] == 0; }
  // Returns the gradient of the shard next() and advances to the following shard. REQUIRES:
  // NextIsReady().
  ShardGradient Take();
  // Returns true if Take() has returned every shard of the step.
  bool done() const { return next_ == partition_.shard_count(); }

 private:
  const Partition& partition_;
  std::vector<uint32_t> tensor_count_of_shard_;
  std::vector<std::vector<ShardId>> shards_of_tensor_;

  uint32_t next_;
  std::vector<uint32_t> missing_of_shard_;  // number of unready tensors of each shard
  std::vector<std::span<const float>> gradients_;
  std::vector<std::shared_ptr<const void>> owners_;  // indexed by tensor
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_GRADIENTS_H_
