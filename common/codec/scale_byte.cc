#include "common/codec/scale_byte.h"

#include <algorithm>
#include <bit>

namespace thinwire {

uint8_t ScaleByteFor(float largest_magnitude) {
  // 448 is 1.75 * 2^8: a mantissa above 1.75 needs the next power of two.
  const uint32_t bits = std::bit_cast<uint32_t>(largest_magnitude) & 0x7FFFFFFF;
  const int exponent = static_cast<int>(bits >> 23) - 8;
  const int rounded_up = exponent + ((bits & 0x7FFFFF) > 0x600000 ? 1 : 0);
  return static_cast<uint8_t>(
      std::clamp(rounded_up, int{kSmallestScaleByte}, int{kLargestScaleByte}));
}

float UnitOfScaleByte(uint8_t byte) {
  return std::bit_cast<float>(static_cast<uint32_t>(byte) << 23);
}

}  // namespace thinwire
