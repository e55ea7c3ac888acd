#include "client/encode/host_shard_encoder.h"

#include <memory>
#include <utility>

#include "client/replica/shard_values.h"
#include "common/codec/payload.h"
#include "kernels/arithmetic.h"
#include "kernels/finite.h"
#include "kernels/reductions.h"

namespace thinwire::client {

HostShardEncoder::HostShardEncoder(const Partition& partition, const ClientOptions& options,
                                   std::pmr::memory_resource* memory)
    : residual_decay_(static_cast<float>(options.residual_decay)) {
  shards_.reserve(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    shards_.push_back(
        {.feedback = ErrorFeedback(partition.value_count(shard), options.error_feedback, memory,
                                   partition.MatrixRunOf(shard)),
         .correction = MomentumCorrection(options.correction, memory)});
  }
}

std::optional<std::span<const float>> HostShardEncoder::Scaled(std::span<const float> gradient,
                                                               float factor) {
  if (factor == 1) {
    if (!kernels::AllFinite(gradient)) return std::nullopt;
    return gradient;
  }
  scaled_.resize(gradient.size());
  if (!kernels::ScaleFinite(factor, gradient, scaled_)) return std::nullopt;
  return scaled_;
}

absl::Status HostShardEncoder::Begin(const Work& work) {
  const auto gradient = Gather(work.gradient.segments, work.gradient.tensors, gathered_);
  const std::optional<std::span<const float>> scaled = Scaled(gradient, work.factor);
  begun_.reset();
  if (scaled.has_value()) begun_ = Encode(work, gradient, *scaled);
  return absl::OkStatus();
}

ByteChain HostShardEncoder::Encode(const Work& work, std::span<const float> gradient,
                                   std::span<const float> scaled) {
  ShardMemory& memory = shards_[work.shard.value];
  memory.feedback.Decay(residual_decay_);
  const std::span<const float> values = memory.correction.Correct(scaled, direction_);
  const std::shared_ptr<const void>& owner = work.gradient.owner;
  if (owner != nullptr && work.gradient.may_alias && values.data() == gradient.data() &&
      memory.feedback.SendsAsItIs(work.codec) && work.error == nullptr) {
    return LendFp32(gradient, owner);
  }
  const std::shared_ptr<const BufferPool::Buffer> buffer =
      pool_.Take(work.codec.MaxPayloadBytes(values.size()));
  if (work.error != nullptr) {
    const std::span<const float> residual = memory.feedback.residual();
    residual_.assign(residual.begin(), residual.end());
  }
  const size_t size = memory.feedback.Encode(work.codec, values, work.keys, buffer->span());
  ByteChain payload(buffer->span().first(size), buffer);
  if (work.error != nullptr) {
    work.error->Add(residual_, values, EncodedPayload(payload, values.size()));
  }
  if (memory.correction.enabled()) {
    memory.correction.Sent(EncodedPayload(payload, values.size()));
  }
  return payload;
}

absl::StatusOr<std::optional<ByteChain>> HostShardEncoder::Finish() {
  return std::exchange(begun_, std::nullopt);
}

absl::Status HostShardEncoder::GiveBack(ShardId shard, const CheckedPayload& payload,
                                        std::span<const uint32_t> selected) {
  shards_[shard.value].feedback.GiveBack(payload, selected);
  return absl::OkStatus();
}

absl::StatusOr<double> HostShardEncoder::SumOfSquares(std::span<const float> gradient) {
  return kernels::SumOfSquares(gradient);
}

absl::StatusOr<std::vector<ShardFeedback>> HostShardEncoder::feedback() {
  std::vector<ShardFeedback> state;
  for (uint32_t s = 0; s < shards_.size(); ++s) state.push_back(FeedbackOf(ShardId{s}));
  return state;
}

ShardFeedback HostShardEncoder::FeedbackOf(ShardId shard) const {
  const ShardMemory& memory = shards_[shard.value];
  return {memory.feedback.residual(), memory.correction.momentum()};
}

absl::Status HostShardEncoder::Restore(ShardId shard, std::span<const float> residual,
                                       std::span<const float> momentum) {
  shards_[shard.value].feedback.Restore(residual);
  shards_[shard.value].correction.Restore(momentum);
  return absl::OkStatus();
}

}  // namespace thinwire::client
