#include "client/replica/host_parameters.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "client/replica/shard_values.h"
#include "common/codec/codec.h"
#include "common/model/value_hash.h"
#include "kernels/copy_past_cache.h"

namespace thinwire::client {
namespace {

// The largest model, in bytes, whose parameters stay in the CPU's cache until the forward pass
// reads them.
constexpr uint64_t kCachedBytes = 32 << 20;

uint64_t BytesOf(const Partition& partition) {
  uint64_t count = 0;
  for (const TensorShape& t : partition.tensors()) count += t.value_count();
  return count * sizeof(float);
}

}  // namespace

HostParameters::HostParameters(const Partition& partition, std::pmr::memory_resource* memory)
    : partition_(partition), past_cache_(BytesOf(partition) > kCachedBytes) {
  for (const TensorShape& t : partition.tensors()) memory_.emplace_back(t.value_count(), memory);
  for (FloatArray& m : memory_) tensors_.push_back(m);
}

absl::Status HostParameters::Fill(std::span<const std::span<const float>> values) {
  for (size_t i = 0; i < memory_.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(), memory_[i].begin());
  }
  return absl::OkStatus();
}

ByteChain HostParameters::SeedPayload(ShardId shard) const {
  const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
  return Fp32Payload(partition_.segments(shard), tensors);
}

absl::StatusOr<uint64_t> HostParameters::Apply(const ParameterChange& change) {
  const std::vector<Segment>& segments = partition_.segments(change.shard);
  std::span<float> values = InPlace(segments, tensors_);
  const bool in_place = !values.empty();
  if (!in_place) {
    const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
    Gather(segments, tensors, scratch_);
    values = scratch_;
  }
  if (const auto* delta = std::get_if<UlpDelta>(&change.values)) {
    delta->Apply(values);
  } else if (const auto& payload = std::get<CheckedPayload>(change.values); change.adds) {
    DecodePayloadAdd(payload, 1, values);
  } else {
    DecodeWhole(payload, values);
  }
  if (!in_place) Scatter(scratch_, segments, tensors_);
  return change.wants_hash ? HashValues(values) : 0;
}

void HostParameters::DecodeWhole(const CheckedPayload& payload, std::span<float> values) {
  if (!past_cache_) return DecodePayload(payload, values);
  DecodePayloadInBlocks(payload, 1, [&](size_t first, auto block) {
    kernels::CopyPastCache(block, values.subspan(first, block.size()));
  });
}

ByteChain Fp32Payload(std::span<const Segment> segments,
                      std::span<const std::span<const float>> tensors) {
  std::vector<float> scratch;
  const std::span<const float> values = Gather(segments, tensors, scratch);
  const std::unique_ptr<const Codec> fp32 = *MakeCodec({.id = CodecId::kFp32});
  std::vector<std::byte> payload(fp32->MaxPayloadBytes(values.size()));
  payload.resize(fp32->Encode(values, RandomKeys(), payload));
  return ByteChain(std::move(payload));
}

}  // namespace thinwire::client
