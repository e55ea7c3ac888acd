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

// Returns the list of INDICES. REQUIRES: INDICES ascends and is below UNIVERSE < 2^32.
ByteChain EncodeIndexList(std::span<const uint32_t> indices, size_t universe);

// Decodes a list from a peer. Errors: InvalidArgument if it is malformed; nothing that grows with a
// number read from LIST is allocated before it is checked. REQUIRES: universe < 2^32.
absl::StatusOr<std::vector<uint32_t>> DecodeIndexList(const ByteChain& list, size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_INDEX_LIST_H_
