// A 64-bit hash of a shard's values, to compare a replica with its server.
//
//   lane j of 4: FNV-1a over the bits of the values j, j + 4, j + 8, ..., one value at a time
//   hash:        FNV-1a over the four lanes, 64 bits at a time; a result of 0 is replaced by 1
//
// FNV-1a: h = (h ^ bits) * 0x100000001b3, starting with 0xcbf29ce484222325. One changed value
// always changes its lane. Four independent lanes use the throughput of a processor's multiplier.
// Pure function: thread-safe.
#ifndef THINWIRE_COMMON_MODEL_VALUE_HASH_H_
#define THINWIRE_COMMON_MODEL_VALUE_HASH_H_

#include <cstdint>
#include <span>

namespace thinwire {

// Returns the hash of VALUES, which is never 0. Callers use 0 for "no hash".
uint64_t HashValues(std::span<const float> values);

// Returns the hash of a model: FNV-1a over the HashValues of its tensors, in order. Never 0.
uint64_t HashTensors(std::span<const std::span<const float>> tensors);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MODEL_VALUE_HASH_H_
