// The ordinal of a float is its position in the ascending order of all floats, as a 32-bit integer:
// 0 for 0.0, 1 for the smallest positive float, -1 for -0.0, and so on. The difference of two
// ordinals is the distance of the two floats in ULPs (units in the last place). Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_SELECT_FLOAT_ORDER_H_
#define THINWIRE_KERNELS_SELECT_FLOAT_ORDER_H_

#include <bit>
#include <cstdint>

namespace thinwire::kernels {

constexpr uint32_t OrdinalOfFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return bits >> 31 == 0 ? bits : bits ^ 0x7FFFFFFF;
}

constexpr float FloatOfOrdinal(uint32_t ordinal) {
  return std::bit_cast<float>(ordinal >> 31 == 0 ? ordinal : ordinal ^ 0x7FFFFFFF);
}

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SELECT_FLOAT_ORDER_H_
