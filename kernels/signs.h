// One-bit codes: bit i % 8 of byte i / 8 is the sign bit of value i. A table has two entries:
// entries[0] for positive and entries[1] for negative values.
//
//   PackSigns           bits = signs of values
//   PackSignsSubtract   bits = signs of values;  value -= entries[bit]
//   UnpackSigns         out = entries[bit]
//   UnpackSignsAdd      sum += entries[bit]
//
// PackBits() and LookUp() compute the same results from one byte per value. The functions here keep
// the signs in a vector mask, so packing needs no extra pass. Uses Highway vector instructions.
// Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_SIGNS_H_
#define THINWIRE_KERNELS_SIGNS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

// REQUIRES, for all functions: BITS points to ceil(n / 8) bytes for n values. Unused bits of the
// last byte are written as 0.

void PackSigns(std::span<const float> values, std::byte* bits);
void PackSignsSubtract(std::span<const float, 2> entries, std::span<float> values, std::byte* bits);

void UnpackSigns(const std::byte* bits, std::span<const float, 2> entries, std::span<float> out);
void UnpackSignsAdd(const std::byte* bits, std::span<const float, 2> entries, std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SIGNS_H_
