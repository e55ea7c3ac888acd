#include "client/replica.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/splitter.h"
#include "common/codec/codec.h"
#include "common/codec/moves.h"
#include "common/value_hash.h"
#include "kernels/copy_past_cache.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {
namespace {

// A model of more bytes has left the cache before forward reads it.
constexpr uint64_t kCachedBytes = 32 << 20;

uint64_t BytesOf(const Partition& partition) {
  uint64_t count = 0;
  for (const TensorShape& t : partition.tensors()) count += t.value_count();
  return count * sizeof(float);
}

}  // namespace

Replica::Replica(const Partition& partition)
    : partition_(partition),
      past_cache_(BytesOf(partition) > kCachedBytes),
      shards_(partition.shard_count()) {
  for (const TensorShape& t : partition.tensors()) memory_.emplace_back(t.value_count());
  for (std::vector<float>& m : memory_) tensors_.push_back(m);
}

void Replica::Fill(std::span<const std::span<const float>> values) {
  for (size_t i = 0; i < memory_.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(), memory_[i].begin());
  }
}

ByteChain Replica::SeedPayload(ShardId shard) const {
  const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
  std::vector<float> scratch;
  const std::span<const float> values = Gather(partition_.segments(shard), tensors, scratch);
  const std::unique_ptr<const Codec> fp32 = *MakeCodec({.id = CodecId::kFp32});
  std::vector<std::byte> payload(fp32->MaxPayloadBytes(values.size()));
  payload.resize(fp32->Encode(values, Turn(), payload));
  return ByteChain(std::move(payload));
}

absl::StatusOr<Replica::Merged> Replica::Merge(const ParametersEntry& entry) {
  Held& held = shards_[entry.shard.value];
  const size_t count = partition_.value_count(entry.shard);
  if (!Parameters::Kind_IsValid(static_cast<int>(entry.kind))) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", entry.shard.value,
                                                   ": want a kind of 0 to ", Parameters::Kind_MAX,
                                                   ", got ", entry.kind));
  }
  const bool full = entry.kind == Parameters::FULL;
  if (!full) {
    if (!held.filled) return Merged::kNeedsFull;
    if (entry.version <= held.version) return Merged::kDone;
    if (held.version != entry.base_version) return Merged::kNeedsFull;
  }
  const absl::Status s = entry.kind == Parameters::MOVE ? CheckMoves(entry.payload, count)
                                                        : CheckPayload(entry.payload, count);
  if (!s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", entry.shard.value, ": ", s.message()));
  }
  const uint64_t hash = Apply(entry);
  if (hash != entry.published_hash) {
    Forget(entry.shard);
    if (!full) return Merged::kDiffers;
    return absl::DataLossError(absl::StrCat(
        "shard ", entry.shard.value, ": version ", entry.version.value,
        " came whole and hashes to ", absl::Hex(hash), ", want ", absl::Hex(entry.published_hash)));
  }
  held = {.version = entry.version, .filled = true};
  return Merged::kDone;
}

uint64_t Replica::Apply(const ParametersEntry& entry) {
  const std::vector<Segment>& segments = partition_.segments(entry.shard);
  std::span<float> values = InPlace(segments, tensors_);
  const bool in_place = !values.empty();
  if (!in_place) {
    const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
    Gather(segments, tensors, scratch_);
    values = scratch_;
  }
  if (entry.kind == Parameters::ADD) {
    DecodePayloadAdd(entry.payload, 1, values);
  } else if (entry.kind == Parameters::MOVE) {
    ApplyMoves(entry.payload, values);
  } else {
    DecodeWhole(entry.payload, values);
  }
  if (!in_place) Scatter(scratch_, segments, tensors_);
  return entry.published_hash != 0 ? HashValues(values) : 0;
}

void Replica::DecodeWhole(const ByteChain& payload, std::span<float> values) {
  if (!past_cache_) return DecodePayload(payload, values);
  DecodePayloadInBlocks(payload, 1, values.size(), [&](size_t first, auto block) {
    kernels::CopyPastCache(block, values.subspan(first, block.size()));
  });
}

}  // namespace thinwire::client
