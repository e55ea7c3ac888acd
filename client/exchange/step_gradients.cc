#include "client/exchange/step_gradients.h"

#include <algorithm>
#include <utility>

namespace thinwire::client {

StepGradients::StepGradients(const Partition& partition,
                             const std::vector<std::vector<ShardId>>& fragments)
    : partition_(partition),
      fragments_(fragments),
      tensor_count_of_shard_(partition.shard_count(), 0),
      next_(partition.shard_count()),
      gradients_(partition.tensors().size()),
      owners_(partition.tensors().size()) {
  for (const std::vector<ShardId>& fragment : fragments) {
    order_.insert(order_.end(), fragment.begin(), fragment.end());
  }
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

void StepGradients::ReadyFragment(uint32_t fragment,
                                  std::span<const std::span<const float>> tensors) {
  std::ranges::copy(tensors, gradients_.begin());
  for (const ShardId shard : fragments_[fragment]) missing_of_shard_[shard.value] = 0;
}

ShardGradient StepGradients::Take() {
  const std::vector<Segment>& segments = partition_.segments(order_[next_++]);
  ShardGradient taken = {.segments = segments, .tensors = gradients_};
  if (segments.size() == 1) taken.owner = owners_[segments[0].tensor];
  if (done()) std::ranges::fill(owners_, nullptr);
  return taken;
}

}  // namespace thinwire::client
