#include "client/step_gradients.h"

#include "client/splitter.h"

namespace thinwire::client {

StepGradients::StepGradients(const Partition& partition)
    : partition_(partition),
      tensors_of_shard_(partition.shard_count(), 0),
      next_(partition.shard_count()),
      gradients_(partition.tensors().size()) {
  for (uint32_t t = 0; t < partition.tensors().size(); ++t) {
    shards_of_tensor_.push_back(partition.ShardsOfTensor(t));
    for (const ShardId shard : shards_of_tensor_[t]) ++tensors_of_shard_[shard.value];
  }
}

void StepGradients::Begin() {
  next_ = 0;
  missing_of_shard_ = tensors_of_shard_;
}

void StepGradients::Ready(uint32_t tensor, std::span<const float> gradient) {
  gradients_[tensor] = gradient;
  for (const ShardId shard : shards_of_tensor_[tensor]) --missing_of_shard_[shard.value];
}

std::span<const float> StepGradients::Take() {
  return Gather(partition_.segments(ShardId{next_++}), gradients_, scratch_);
}

}  // namespace thinwire::client
