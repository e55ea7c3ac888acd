// Copies values between the tensors of a model and one shard.
//
//   one segment        the shard's values are contiguous in a tensor; used without a copy
//   several segments   vectors share the shard; a scratch array contains a copy of their values
#ifndef THINWIRE_CLIENT_REPLICA_SHARD_VALUES_H_
#define THINWIRE_CLIENT_REPLICA_SHARD_VALUES_H_

#include <span>
#include <vector>

#include "common/model/partition.h"

namespace thinwire::client {

// Returns the values of SEGMENTS in TENSORS, in the order of the segments. The result points into
// TENSORS or SCRATCH. REQUIRES: all segments are within TENSORS.
std::span<const float> Gather(std::span<const Segment> segments,
                              std::span<const std::span<const float>> tensors,
                              std::vector<float>& scratch);

// Returns the part of TENSORS that the only element of SEGMENTS refers to, or an empty span if
// there are several segments.
std::span<float> InPlace(std::span<const Segment> segments,
                         std::span<const std::span<float>> tensors);

// Copies VALUES to SEGMENTS of TENSORS, in the order of the segments. REQUIRES: SEGMENTS have
// VALUES.size() values in total.
void Scatter(std::span<const float> values, std::span<const Segment> segments,
             std::span<const std::span<float>> tensors);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_SHARD_VALUES_H_
