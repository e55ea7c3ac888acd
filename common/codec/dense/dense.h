// The dense family: codecs that encode every value in a number format (kernels/number_format.h).
//
//   fp32 fp16 bf16 fp8_e5m2   body = codes, little-endian
//   fp8_e4m3                  body = scale byte (scaled_encode.h) | codes
//
// The decoder reads the codes without copying the payload, also if a code straddles two pieces of a
// chain. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_DENSE_DENSE_H_
#define THINWIRE_COMMON_CODEC_DENSE_DENSE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "common/codec/family/encoder.h"
#include "common/codec/family/value_format.h"

namespace thinwire {

// The functions below REQUIRE that the codec with the id ID belongs to the dense family.

// Returns the payload format of codec ID.
const ValueFormat* DenseFormat(CodecId id);

// Returns the encoder of codec ID. Dense codecs have no settings.
std::unique_ptr<const Codec> MakeDenseCodec(CodecId id);

// Returns the size in bytes of COUNT values encoded with codec ID, without the codec id byte.
size_t DenseBytes(CodecId id, size_t count);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_DENSE_DENSE_H_
