// Encodes a shard in fp8_e4m3 (scale byte, then codes) with one read of its values from memory.
//
// The scale of a shard is a power of two, sent as one byte:
//
//   unit = 2^(byte - 127);   value = unit * decode(code)
//
// It is the smallest unit with |v| <= 448 unit for all values v, limited to [2^-126, 2^119]. Within
// these limits the unit, its reciprocal and 448 units are normal floats, so every finite code
// decodes to a finite value.
//
// The shard's largest magnitude is known only after the last value. Therefore the encoder encodes
// each block of values with the scale of the largest magnitude so far. At the end it encodes again
// the blocks whose scale was too small. The largest magnitude of a few thousand values is rarely
// below half of the shard's largest magnitude, so few blocks are encoded twice. The bytes equal
// those of an encoder with one pass for the scale and one for the codes.
//
// Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_DENSE_SCALED_ENCODE_H_
#define THINWIRE_COMMON_CODEC_DENSE_SCALED_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire {

inline constexpr uint8_t kMinScaleByte = 1;
inline constexpr uint8_t kMaxScaleByte = 246;

// Returns the scale byte of a shard whose largest magnitude is LARGEST_MAGNITUDE.
uint8_t ScaleByteFor(float largest_magnitude);
// Returns the unit of a scale byte. REQUIRES: kMinScaleByte <= byte <= kMaxScaleByte.
float UnitOfScaleByte(uint8_t byte);

// Writes the encoding of VALUES, 1 + values.size() bytes, to OUT.
void EncodeScaled(std::span<const float> values, std::byte* out);

// Encodes v = RESIDUAL + GRADIENT like EncodeScaled, and sets RESIDUAL to v - decode(bytes).
// REQUIRES: residual.size() == gradient.size().
void EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                          std::byte* out);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_DENSE_SCALED_ENCODE_H_
