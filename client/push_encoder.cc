#include "client/push_encoder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/codec/dense.h"
#include "common/mix_bits.h"
#include "kernels/finite.h"

namespace thinwire::client {
namespace {

bool IsVectorShard(const Partition& partition, ShardId shard) {
  return partition.tensors()[partition.segments(shard)[0].tensor].shape.size() < 2;
}

// All workers share a step's draw of a shard, and none shares its own.
Turn TurnOf(const PushEntry& entry, WorkerId worker) {
  const uint64_t shared = MixBits(MixBits(entry.step.value) + entry.shard.value);
  return {.shared_draw = shared, .own_draw = MixBits(shared + worker.value + 1)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<PushEncoder>> PushEncoder::Make(const Partition& partition,
                                                               const CodecSpec& spec,
                                                               bool error_feedback,
                                                               WorkerId worker) {
  auto matrices = MakeCodec(spec);
  if (!matrices.ok()) return matrices.status();
  auto vectors = MakeCodec(IsDense(spec.id) ? spec : CodecSpec{.id = spec.values});
  if (!vectors.ok()) return vectors.status();
  return std::unique_ptr<PushEncoder>(new PushEncoder(partition, error_feedback, worker,
                                                      *std::move(matrices), *std::move(vectors)));
}

PushEncoder::PushEncoder(const Partition& partition, bool error_feedback, WorkerId worker,
                         std::unique_ptr<const Codec> matrices,
                         std::unique_ptr<const Codec> vectors)
    : worker_(worker), matrix_codec_(std::move(matrices)), vector_codec_(std::move(vectors)) {
  shards_.reserve(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const bool vector = IsVectorShard(partition, ShardId{s});
    shards_.push_back({.feedback = ErrorFeedback(partition.value_count(ShardId{s}), error_feedback),
                       .codec = vector ? vector_codec_.get() : matrix_codec_.get()});
  }
}

bool PushEncoder::Encode(std::span<const float> gradient, PushEntry& entry,
                         const std::shared_ptr<const void>& owner) {
  ShardMemory& memory = shards_[entry.shard.value];
  entry.late_examples = memory.late_examples;
  entry.payload = ByteChain();
  if (entry.examples == 0) return true;
  if (!kernels::AllFinite(gradient)) {
    entry.examples = 0;
    return false;
  }
  if (owner != nullptr && memory.feedback.SendsAsItIs(*memory.codec)) {
    entry.payload = LendFp32(gradient, owner);
    return true;
  }
  const size_t most = memory.codec->MaxPayloadBytes(gradient.size());
  std::shared_ptr<const BufferPool::Buffer> buffer = pool_.Take(most);
  const size_t size =
      memory.feedback.Encode(*memory.codec, gradient, TurnOf(entry, worker_), buffer->span());
  entry.payload = ByteChain(buffer->span().first(size), buffer);
  return true;
}

void PushEncoder::Accepted(const PushEntry& push) {
  // A push of weight 0 brought nothing, so what was owed still is.
  if (push.examples > 0) shards_[push.shard.value].late_examples = 0;
}

void PushEncoder::Late(const PushEntry& push) {
  if (push.examples == 0) return;
  ShardMemory& memory = shards_[push.shard.value];
  memory.feedback.GiveBack(push.payload);
  const uint32_t room = std::numeric_limits<uint32_t>::max() - memory.late_examples;
  memory.late_examples += std::min(push.examples, room);
}

std::span<const float> PushEncoder::residual(ShardId shard) const {
  return shards_[shard.value].feedback.residual();
}

}  // namespace thinwire::client
