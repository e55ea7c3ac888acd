// Moves values between the tensors of a model and one shard.
//
//   one segment        the shard's values are contiguous in a tensor: used in place, not copied
//   several segments   vectors share the shard: gathered into, and scattered from, a scratch array
#ifndef THINWIRE_CLIENT_REPLICA_SHARD_VALUES_H_
#define THINWIRE_CLIENT_REPLICA_SHARD_VALUES_H_

#include <span>
#include <vector>

#include "common/partition.h"

namespace thinwire::client {

// Returns the values of SEGMENTS in TENSORS, in order. The result points into TENSORS or SCRATCH.
// REQUIRES: the segments lie within TENSORS.
std::span<const float> Gather(std::span<const Segment> segments,
                              std::span<const std::span<const float>> tensors,
                              std::vector<float>& scratch);

// Returns the memory of the single segment, or an empty span if there are several segments.
std::span<float> InPlace(std::span<const Segment> segments,
                         std::span<const std::span<float>> tensors);

// Copies VALUES to SEGMENTS of TENSORS, in order. REQUIRES: the segments hold VALUES.size() values.
void Scatter(std::span<const float> values, std::span<const Segment> segments,
             std::span<const std::span<float>> tensors);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_SHARD_VALUES_H_
