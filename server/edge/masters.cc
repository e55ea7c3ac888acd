#include "server/edge/masters.h"

#include <bit>

namespace thinwire {

// The wire is little-endian, and so are all machines this is built for.
static_assert(std::endian::native == std::endian::little);

std::vector<MastersChunk> ChunksOf(const Partition& partition, ShardId shard,
                                   std::span<const float> values) {
  std::vector<MastersChunk> chunks;
  for (const Segment& segment : partition.segments(shard)) {
    MastersChunk& chunk = chunks.emplace_back();
    chunk.set_tensor(partition.tensors()[segment.tensor].name);
    chunk.set_offset(segment.offset);
    chunk.set_values(values.data(), segment.count * sizeof(float));
    values = values.subspan(segment.count);
  }
  return chunks;
}

}  // namespace thinwire
