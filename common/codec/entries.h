// A topk payload of chosen values: whichever indices are given, however many, their values in fp32.
// sparse_head.h has the format. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_ENTRIES_H_
#define THINWIRE_COMMON_CODEC_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/byte_chain.h"

namespace thinwire {

// The length of a payload of ENTRY_COUNT of COUNT values. REQUIRES: entry_count <= count < 2^32.
size_t EntriesPayloadBytes(size_t entry_count, size_t count);

// The payload of VALUES at INDICES. REQUIRES: INDICES rise and are below values.size() < 2^32.
ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices);

// Puts the values that PAYLOAD has entries for in their places; a dense payload has one for each.
// REQUIRES: CheckPayload(payload, values.size()) passed.
void ReplaceEntries(const ByteChain& payload, std::span<float> values);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_ENTRIES_H_
