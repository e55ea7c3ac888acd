// The topk codec: the k values of largest magnitude, and where they are.
//
//   value codec (1 byte) | k (varint) | indices (elias_fano.h) | values (dense.h)
//
// k = max(1, round(density * n)); of equal magnitudes the lower index is sent. What is not sent
// decodes to 0. The varint has 7 bits in a byte, lowest first, a set top bit where another byte
// follows, and no byte more than it needs. (Aji and Heafield 2017.) Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_TOP_K_H_
#define THINWIRE_COMMON_CODEC_TOP_K_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"

namespace thinwire {

// Errors: InvalidArgument for a density outside (0, 1] or a value codec that is not dense.
absl::StatusOr<std::unique_ptr<const Codec>> MakeTopKCodec(double density, CodecId values);

// Whether a payload whose first byte says topk is one of COUNT values. Errors: InvalidArgument.
absl::Status CheckTopK(const ByteChain& payload, size_t count);

// The rest REQUIRE that CheckTopK(payload, count) passed, as in codec.h.

bool TopKIsWithin(const ByteChain& payload, size_t count, float limit);
// out = scale * decode(payload)
void DecodeTopK(const ByteChain& payload, float scale, std::span<float> out);
// block(first, values) for scale * decode(payload), as DecodePayloadInBlocks
void DecodeTopKInBlocks(const ByteChain& payload, float scale, size_t count, BlockFunction block);
// block(indices, values), as ForEachSent
void ForEachSentOfTopK(const ByteChain& payload, size_t count, SentFunction block);
// sum += scale * decode(payload), at the indices sent alone
void DecodeTopKAdd(const ByteChain& payload, float scale, std::span<float> sum);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_TOP_K_H_
