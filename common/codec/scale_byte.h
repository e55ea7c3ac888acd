// The scale of an fp8_e4m3 shard: a power of two, sent as one byte.
//
//   unit = 2^(byte - 127);   value = unit * decode(code)
//
// It is rounded up, to the smallest unit with |v| <= 448 unit for all v, and held within [2^-126,
// 2^119]: there the unit, its reciprocal and 448 units are all ordinary floats, so every finite
// code decodes to a finite value.
#ifndef THINWIRE_COMMON_CODEC_SCALE_BYTE_H_
#define THINWIRE_COMMON_CODEC_SCALE_BYTE_H_

#include <cstdint>

namespace thinwire {

inline constexpr uint8_t kSmallestScaleByte = 1;
inline constexpr uint8_t kLargestScaleByte = 246;

// The byte for values of at most LARGEST_MAGNITUDE.
uint8_t ScaleByteFor(float largest_magnitude);

// REQUIRES: a byte within the two limits.
float UnitOfScaleByte(uint8_t byte);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SCALE_BYTE_H_
