// The orthonormal discrete cosine transform (DCT-II; Ahmed, Natarajan and Rao 1974) of chunks of 64
// values, and its inverse:
//
//   Dct          coefficient k = sum over i of B(k, i) * value i
//   InverseDct   value i = sum over k of B(k, i) * coefficient k
//   B(0, i) = 1/8;   B(k, i) = sqrt(1/32) cos(pi k (2 i + 1) / 128), rounded to float
//
// The halves of a chunk mirror each other: B(k, 63 - i) is B(k, i) for even k and -B(k, i) for odd
// k. So every sum has 32 terms, for i and k from 0 on:
//
//   Dct          of B(k, i) * (value i + value 63-i) if k is even, (value i - value 63-i) if odd
//   InverseDct   e = sum over even k, o = sum over odd k;   value i = e + o, value 63-i = e - o
//
// Every operation is rounded to float separately, so results do not depend on the machine.
// InverseDct skips coefficients that are 0, and takes a time proportional to the number of others.
// Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_DCT_H_
#define THINWIRE_KERNELS_DCT_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kDctChunk = 64;

// REQUIRES, for both functions: values.size() is a multiple of kDctChunk; the arrays have equal
// lengths; they are one array or do not overlap.
void Dct(std::span<const float> values, std::span<float> coefficients);
void InverseDct(std::span<const float> coefficients, std::span<float> values);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_DCT_H_
