#include "common/model/tensor_kind.h"

#include <algorithm>

namespace thinwire {

std::string_view TensorKindName(TensorKind kind) {
  switch (kind) {
    case TensorKind::kMatrices:
      return "matrices";
    case TensorKind::kConvolutions:
      return "convolutions";
    case TensorKind::kVectors:
      return "vectors";
  }
  return "";
}

TensorKind TensorKindOf(const Partition& partition, ShardId shard) {
  const size_t dimensions = partition.tensors()[partition.segments(shard)[0].tensor].shape.size();
  if (dimensions < 2) return TensorKind::kVectors;
  return dimensions == 2 ? TensorKind::kMatrices : TensorKind::kConvolutions;
}

std::map<TensorKind, uint64_t> LargestShards(const Partition& partition) {
  std::map<TensorKind, uint64_t> largest;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    uint64_t& values = largest[TensorKindOf(partition, ShardId{s})];
    values = std::max(values, partition.value_count(ShardId{s}));
  }
  return largest;
}

}  // namespace thinwire
