#include "client/exchange/step_gradients.h"

#include <algorithm>
#include <utility>

namespace thinwire::client {

StepGradients::StepGradients(const Partition& partition)
    : partition_(partition),
      tensor_count_of_shard_(partition.shard_count(), 0),
      next_(partition.shard_count()),
      gradients_(partition.tensors().size()),
      owners_(partition.tensors().size()) {
  for (uint32_t t = 0; t < partition.tensors().size(); ++t) {
    shards_of_tensor_.push_back(partition.ShardsOfTensor(t));
    for (const ShardId shard : shards_of_tensor_[t]) ++tensor_count_of_shard_[shard.value];
  }
}

void StepGradients::Begin() {
  next_ = 0;
  missing_of_shard_ = tensor_count_of_shard_;
}

void StepGradients::Ready(uint32_t tensor, std::span<const float> gradient,
                          std::shared_ptr<const void> owner) {
  gradients_[tensor] = gradient;
  owners_[tensor] = std::move(owner);
  for (const ShardId shard : shards_of_tensor_[tensor]) --missing_of_shard_[shard.value];
}

ShardGradient StepGradients::Take() {
  const std::vector<Segment>& segments = partition_.segments(ShardId{next_++});
  ShardGradient taken = {.segments = segments, .tensors = gradients_};
  if (segments.size() == 1) taken.owner = owners_[segments[0].tensor];
  if (done()) std::ranges::fill(owners_, nullptr);
  return taken;
}

}  // namespace thinwire::client
