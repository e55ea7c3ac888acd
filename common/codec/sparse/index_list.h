// An index list: a set of a shard's indices without values.
//
//   k (4 bytes, little-endian) | k ascending indices in Elias-Fano code (index_code.h)
//
// A list is never empty bytes: a list of no indices has k = 0. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_
#define THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/byte_chain.h"

namespace thinwire {

// Returns the list of INDICES. UNIVERSE is the number of values of the shard. REQUIRES: INDICES is
// strictly ascending, every index is below UNIVERSE, and universe < 2^32.
ByteChain EncodeIndexList(std::span<const uint32_t> indices, size_t universe);

// Decodes a list from a peer. Checks the number of indices before it allocates memory for them.
// Errors: InvalidArgument if LIST is malformed or an index is not below UNIVERSE. REQUIRES:
// universe < 2^32.
absl::StatusOr<std::vector<uint32_t>> DecodeIndexList(const ByteChain& list, size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_
