// An index list: which of a shard's values, and nothing of what they are.
//
//   k (4 bytes, little-endian) | the k indices, rising, in Elias-Fano (index_code.h)
//
// It is never empty: a list of no index says that there is none. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_INDEX_LIST_H_
#define THINWIRE_COMMON_CODEC_INDEX_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/byte_chain.h"

namespace thinwire {

// REQUIRES: INDICES rise and are below UNIVERSE < 2^32.
ByteChain EncodeIndexList(std::span<const uint32_t> indices, size_t universe);

// The indices of a list that came from a peer. Errors: InvalidArgument that says what was wanted
// and what came; nothing that grows with a number read from LIST is allocated before that.
// REQUIRES: universe < 2^32.
absl::StatusOr<std::vector<uint32_t>> DecodeIndexList(const ByteChain& list, size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_INDEX_LIST_H_
