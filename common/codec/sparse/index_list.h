// An index list: a set of a shard's indices without values.
//
//   k (4 bytes, little-endian) | k ascending indices in Elias-Fano code (index_code.h)
//
// An empty list is encoded as k = 0, so an encoded list always has bytes. Pure functions:
// thread-safe.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_
#define THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// Returns the encoded list of INDICES. REQUIRES: INDICES is ascending and its elements are below
// UNIVERSE; UNIVERSE < 2^32.
ByteChain EncodeIndexList(std::span<const uint32_t> indices, size_t universe);

// Decodes a list that a peer sent. Checks each number in LIST before the number determines the size
// of an allocation. Errors: InvalidArgument if LIST is malformed. REQUIRES: universe < 2^32.
absl::StatusOr<std::vector<uint32_t>> DecodeIndexList(const ByteChain& list, size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_
