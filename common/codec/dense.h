// The number formats: every value of a shard as a code of one (kernels/number_format.h), back to
// back.
//
//   fp32 fp16 bf16 fp8_e5m2   codes, little-endian
//   fp8_e4m3                  scale byte (scale_byte.h) | codes
//
// These bytes are the body of a dense payload, and they hold the values of a sparse one. The
// functions read and write them at OFFSET of a chain or a span, and decode codes where they lie,
// also those that straddle pieces. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_DENSE_H_
#define THINWIRE_COMMON_CODEC_DENSE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"

namespace thinwire {

// For all: REQUIRES that id is one of these five.

// The codec of a whole shard.
std::unique_ptr<const Codec> MakeDenseCodec(CodecId id);

// An fp32 payload of VALUES that lie elsewhere: OWNER keeps them alive, and nobody changes them
// while it does. The bytes that Encode would write, without a copy.
ByteChain LendFp32(std::span<const float> values, std::shared_ptr<const void> owner);

// The bytes of COUNT values.
size_t DenseBytes(CodecId id, size_t count);

// Writes DenseBytes bytes to OUT.
void EncodeDense(CodecId id, std::span<const float> values, std::byte* out);
// The same of v = residual + gradient; residual becomes what was lost of v.
void EncodeDenseFeedback(CodecId id, std::span<const float> gradient, std::span<float> residual,
                         std::byte* out);

// Where the encoded values of a payload begin. Borrows the payload.
struct DenseValues {
  CodecId id;
  const ByteChain& payload;
  size_t offset;
};

// What the length cannot tell: that the scale byte is one. Errors: InvalidArgument.
// REQUIRES: DenseBytes bytes at the offset.
absl::Status CheckDense(const DenseValues& values);

// The rest REQUIRE that CheckDense passed.

// Whether the COUNT values are finite and of magnitudes up to LIMIT.
bool DenseIsWithin(const DenseValues& values, size_t count, float limit);
// out = scale * the values from number FIRST
void DecodeDense(const DenseValues& values, size_t first, float scale, std::span<float> out);
// sum += scale * values
void DecodeDenseAdd(const DenseValues& values, float scale, std::span<float> sum);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_DENSE_H_
