// Splitter: between the tensors of a model and the values of one shard.
//
//   one segment    the shard's values are where the tensor's are: nothing is copied
//   several        (vectors share shards) gathered into, and scattered from, a scratch array
#ifndef THINWIRE_CLIENT_SPLITTER_H_
#define THINWIRE_CLIENT_SPLITTER_H_

#include <span>
#include <vector>

#include "common/partition.h"

namespace thinwire::client {

// The values that SEGMENTS name. The span lives as long as the tensors and SCRATCH do. REQUIRES:
// the segments lie within TENSORS.
std::span<const float> Gather(std::span<const Segment> segments,
                              std::span<const std::span<const float>> tensors,
                              std::vector<float>& scratch);

// Where the values that SEGMENTS name are if they are in one piece, else empty.
std::span<float> InPlace(std::span<const Segment> segments,
                         std::span<const std::span<float>> tensors);

// Puts VALUES where SEGMENTS say. REQUIRES: as many as the segments hold.
void Scatter(std::span<const float> values, std::span<const Segment> segments,
             std::span<const std::span<float>> tensors);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_SPLITTER_H_
