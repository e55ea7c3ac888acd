// A topk payload of chosen values, for tests: whichever indices are given, however many, their
// values in fp32. sparse_head.h has the format. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_ENTRIES_H_
#define THINWIRE_COMMON_CODEC_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/byte_chain.h"

namespace thinwire {

// The payload of VALUES at INDICES. REQUIRES: INDICES rise and are below values.size() < 2^32.
ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices);
}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_ENTRIES_H_
