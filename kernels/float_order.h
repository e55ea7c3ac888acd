// Numbers all floats in ascending order of their values: 0 for 0.0, 1 for the smallest positive
// float, -1 for -0.0, and so on, as a 32-bit integer. The difference of two numbers is the distance
// of the floats in ULPs. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_FLOAT_ORDER_H_
#define THINWIRE_KERNELS_FLOAT_ORDER_H_

#include <bit>
#include <cstdint>

namespace thinwire::kernels {

constexpr uint32_t NumberOfFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return bits >> 31 == 0 ? bits : bits ^ 0x7FFFFFFF;
}

constexpr float FloatOfNumber(uint32_t number) {
  return std::bit_cast<float>(number >> 31 == 0 ? number : number ^ 0x7FFFFFFF);
}

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_FLOAT_ORDER_H_
