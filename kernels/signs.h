// Signs of values, a bit each, and back by a table of two. The bit of value i is bit i % 8 of byte
// i / 8, and set where the sign bit is.
//
//   PutSigns       bits = signs of values
//   TakeSigns      bits = signs of values;  value -= entries[its bit]
//   FromSigns      out = entries[bit]
//   AddFromSigns   sum += entries[bit]
//
// PackBits and LookUp do the same by way of a byte a value. Here a value's bit is a lane of a mask,
// so that it takes no pass of its own. Vectors: Highway. Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_SIGNS_H_
#define THINWIRE_KERNELS_SIGNS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

// REQUIRES, for all: BITS has a byte for each 8 values or part of them. The bits that the last
// byte has beyond the values are written as 0.

void PutSigns(std::span<const float> values, std::byte* bits);
void TakeSigns(std::span<const float, 2> entries, std::span<float> values, std::byte* bits);

void FromSigns(const std::byte* bits, std::span<const float, 2> entries, std::span<float> out);
void AddFromSigns(const std::byte* bits, std::span<const float, 2> entries, std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SIGNS_H_
