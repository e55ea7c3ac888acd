// TensorGroup: the tensors for which one push codec is chosen (codec_tuner.h). The laboratory,
// which knows the costs of codecs without a measurement, chooses for the same groups.
//
//   group          tensors of                    candidates
//   matrices       two dimensions                all
//   convolutions   three dimensions or more      all
//   vectors        one dimension or none         dense codecs of 8 bits or more (decisions/0041)
#ifndef THINWIRE_CLIENT_ENCODE_TENSOR_GROUP_H_
#define THINWIRE_CLIENT_ENCODE_TENSOR_GROUP_H_

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

enum class TensorGroup { kMatrices, kConvolutions, kVectors };

std::string_view TensorGroupName(TensorGroup group);
// Returns the group of the tensors in SHARD.
TensorGroup TensorGroupOf(const Partition& partition, ShardId shard);
// Returns the number of values in the largest shard of each group that PARTITION has.
std::map<TensorGroup, uint64_t> LargestShards(const Partition& partition);
// Returns fp32 and those of CODECS that GROUP may use. fp32 is always a candidate, so that it can
// be chosen if it is the fastest codec.
std::vector<CodecSpec> GroupCandidates(std::span<const CodecSpec> codecs, TensorGroup group);
// Returns the number by which a server's time to decode one value is multiplied: a server decodes
// the pushes of all workers for its own shards.
double DecodeShare(uint32_t worker_count, uint32_t server_count);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_TENSOR_GROUP_H_
