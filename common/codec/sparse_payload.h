// Reads sparse payloads, topk and randomk (sparse_head.h), from wherever their pieces lie. What was
// not sent decodes to 0. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_PAYLOAD_H_
#define THINWIRE_COMMON_CODEC_SPARSE_PAYLOAD_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"

namespace thinwire {

// Whether a payload whose first byte says that it is sparse is one of COUNT values. Errors:
// InvalidArgument.
absl::Status CheckSparse(const ByteChain& payload, size_t count);

// The rest REQUIRE that CheckSparse(payload, count) passed, and are as in codec.h.

bool SparseIsWithin(const ByteChain& payload, size_t count, float limit);
void DecodeSparse(const ByteChain& payload, float scale, std::span<float> out);
void DecodeSparseInBlocks(const ByteChain& payload, float scale, size_t count, BlockFunction block);
void DecodeSparseAdd(const ByteChain& payload, float scale, std::span<float> sum);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_PAYLOAD_H_
