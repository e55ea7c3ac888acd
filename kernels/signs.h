// One-bit codes: bit i % 8 of byte i / 8 is the sign bit of value i, and a table has one entry for
// each sign (entries[1] for negative values).
//
//   PutSigns       bits = signs of values
//   TakeSigns      bits = signs of values;  value -= entries[its bit]
//   FromSigns      out = entries[bit]
//   AddFromSigns   sum += entries[bit]
//
// PackBits() and LookUp() give the same results through a byte per value; here signs are lanes of a
// vector mask, so packing needs no extra pass. Uses Highway vector instructions. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_SIGNS_H_
#define THINWIRE_KERNELS_SIGNS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

// // REQUIRES, for all functions: BITS has ceil(n / 8) bytes for n values. Unused bits of the last
// byte are written as 0.

void PutSigns(std::span<const float> values, std::byte* bits);
void TakeSigns(std::span<const float, 2> entries, std::span<float> values, std::byte* bits);

void FromSigns(const std::byte* bits, std::span<const float, 2> entries, std::span<float> out);
void AddFromSigns(const std::byte* bits, std::span<const float, 2> entries, std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SIGNS_H_
