#include "client/replica.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/splitter.h"
#include "common/codec/codec.h"

namespace thinwire::client {

Replica::Replica(const Partition& partition)
    : partition_(partition), shards_(partition.shard_count()) {
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
  if (entry.delta) {
    if (!held.filled) return Merged::kNeedsFull;
    if (held.version == entry.version) return Merged::kDone;
    if (held.version != entry.base_version) return Merged::kNeedsFull;
  }
  if (absl::Status s = CheckPayload(entry.payload, count); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", entry.shard.value, ": ", s.message()));
  }
  const std::vector<Segment>& segments = partition_.segments(entry.shard);
  if (const std::span<float> in_place = InPlace(segments, tensors_); !in_place.empty()) {
    Decode(entry, in_place);
  } else {
    const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
    Gather(segments, tensors, scratch_);
    Decode(entry, scratch_);
    Scatter(scratch_, segments, tensors_);
  }
  held = {.version = entry.version, .filled = true};
  return Merged::kDone;
}

void Replica::Decode(const ParametersEntry& entry, std::span<float> values) {
  if (entry.delta) {
    DecodePayloadAdd(entry.payload, 1, values);
  } else {
    DecodePayload(entry.payload, values);
  }
}

}  // namespace thinwire::client
