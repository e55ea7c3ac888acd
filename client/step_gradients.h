// StepGradients: the gradients of the step at hand as backward hands them over, and the next shard
// to be pushed. Shards go in rising number, the order that all workers share; one is ready when all
// the tensors that it holds values of are.
#ifndef THINWIRE_CLIENT_STEP_GRADIENTS_H_
#define THINWIRE_CLIENT_STEP_GRADIENTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/shard_encoder.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

// Not thread-safe.
class StepGradients {
 public:
  // PARTITION outlives this.
  explicit StepGradients(const Partition& partition);

  // A new step: nothing is ready.
  void Begin();
  // The gradient is final and stays valid until done(). Once per tensor and step. OWNER, if there
  // is one, keeps it alive for longer.
  void Ready(uint32_t tensor, std::span<const float> gradient,
             std::shared_ptr<const void> owner = nullptr);

  // The shard whose turn it is. REQUIRES: !done().
  ShardId next() const { return ShardId{next_}; }
  bool NextIsReady() const { return !done() && missing_of_shard_[next_] == 0; }
  // The gradient of next(), whose turn is then over. REQUIRES: NextIsReady().
  ShardGradient Take();
  // Every shard was taken.
  bool done() const { return next_ == partition_.shard_count(); }

 private:
  const Partition& partition_;
  std::vector<uint32_t> tensors_of_shard_;  // how many
  std::vector<std::vector<ShardId>> shards_of_tensor_;

  uint32_t next_;
  std::vector<uint32_t> missing_of_shard_;  // tensors that are not ready
  std::vector<std::span<const float>> gradients_;
  std::vector<std::shared_ptr<const void>> owners_;  // of the gradients
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_STEP_GRADIENTS_H_
