#include "client/encode/tensor_group.h"

#include <algorithm>

namespace thinwire::client {

std::string_view TensorGroupName(TensorGroup group) {
  switch (group) {
    case TensorGroup::kMatrices:
      return "matrices";
    case TensorGroup::kConvolutions:
      return "convolutions";
    case TensorGroup::kVectors:
      return "vectors";
  }
  return "";
}

TensorGroup TensorGroupOf(const Partition& partition, ShardId shard) {
  const size_t dimensions = partition.tensors()[partition.segments(shard)[0].tensor].shape.size();
  if (dimensions < 2) return TensorGroup::kVectors;
  return dimensions == 2 ? TensorGroup::kMatrices : TensorGroup::kConvolutions;
}

std::map<TensorGroup, uint64_t> LargestShards(const Partition& partition) {
  std::map<TensorGroup, uint64_t> largest;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    uint64_t& values = largest[TensorGroupOf(partition, ShardId{s})];
    values = std::max(values, partition.value_count(ShardId{s}));
  }
  return largest;
}

std::vector<CodecSpec> GroupCandidates(std::span<const CodecSpec> codecs, TensorGroup group) {
  std::vector<CodecSpec> candidates = {{.id = CodecId::kFp32}};
  for (const CodecSpec& spec : codecs) {
    const bool fits = group != TensorGroup::kVectors || CarriesParameters(spec.id);
    if (fits && spec.id != CodecId::kFp32) candidates.push_back(spec);
  }
  return candidates;
}

double DecodeShare(uint32_t worker_count, uint32_t server_count) {
  return std::max(1.0, static_cast<double>(worker_count) / static_cast<double>(server_count));
}

}  // namespace thinwire::client
