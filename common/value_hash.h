// A 64-bit hash of a shard's values: do a replica and its server hold the same bits?
//
//   lane j of 4: FNV-1a over the bits, 32 at a time, of the values j, j + 4, j + 8, ...
//   hash:        FNV-1a over the four lanes, 64 bits at a time; 1 instead of 0
//
// FNV-1a: h = (h ^ bits) * 0x100000001b3, from 0xcbf29ce484222325. One changed value always changes
// its lane, and four lanes keep a processor's multiplier busy. Pure function: thread-safe.
#ifndef THINWIRE_COMMON_VALUE_HASH_H_
#define THINWIRE_COMMON_VALUE_HASH_H_

#include <cstdint>
#include <span>

namespace thinwire {

// Never 0, which can so stand for no hash.
uint64_t HashValues(std::span<const float> values);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_VALUE_HASH_H_
