// TensorKind: the tensors for which one push codec is chosen at run time, by the rules auto and
// fastest (client/encode/codec_tuner.h) and by adaptive_per_layer (docs/adaptive_precision.md).
//
//   kind           tensors of
//   matrices       two dimensions
//   convolutions   three dimensions or more
//   vectors        one dimension or none
#ifndef THINWIRE_COMMON_MODEL_TENSOR_KIND_H_
#define THINWIRE_COMMON_MODEL_TENSOR_KIND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "common/base/ids.h"
#include "common/model/partition.h"

namespace thinwire {

// The numbers are those of JoinReply.push_candidates (proto/control.proto).
enum class TensorKind { kMatrices = 0, kConvolutions = 1, kVectors = 2 };

inline constexpr size_t kTensorKinds = 3;

std::string_view TensorKindName(TensorKind kind);
// Returns the kind of the tensors in SHARD.
TensorKind TensorKindOf(const Partition& partition, ShardId shard);
// Returns the number of values in the largest shard of each kind that PARTITION has.
std::map<TensorKind, uint64_t> LargestShards(const Partition& partition);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MODEL_TENSOR_KIND_H_
