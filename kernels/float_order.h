// The number of a float in the order of their values: ..., -1 for -0.0, 0 for 0.0, 1 for the
// smallest above it, ..., as a 32-bit integer. What moves a little moves by a small number.
// Pure functions: thread-safe.
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
