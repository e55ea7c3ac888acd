// A byte of an index code's low or upper part: each finds the indices that it holds bits of by
// itself, so nothing is cleared first and no two threads write to one word. Included only by the
// sources of kernels.
#ifndef THINWIRE_KERNELS_CUDA_INDEX_BYTES_H_
#define THINWIRE_KERNELS_CUDA_INDEX_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {

// Byte number BYTE of the low LOW_BITS bits of COUNT numbers, of which NUMBER(i) is number i.
template <typename Number>
__device__ uint32_t LowByte(const Number& number, size_t count, size_t low_bits, size_t byte) {
  const size_t begin = 8 * byte;
  uint32_t bits = 0;
  for (size_t i = begin / low_bits; i < count && i * low_bits < begin + 8; ++i) {
    const uint64_t low = number(i) & ((uint64_t{1} << low_bits) - 1);
    // Where they begin within the byte, or how many of them lie before it.
    const size_t at = i * low_bits;
    bits |= static_cast<uint32_t>(at >= begin ? low << (at - begin) : low >> (begin - at));
  }
  return bits & 0xFF;
}

// The same of an array in which bit PLACE(i) is set for each i. The places rise, so the first of
// them in the byte is searched for in halves.
template <typename Place>
__device__ uint32_t UpperByte(const Place& place, size_t count, size_t byte) {
  const size_t begin = 8 * byte;
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = (first + end) / 2;
    if (place(middle) < begin) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  uint32_t bits = 0;
  for (size_t i = first; i < count; ++i) {
    const size_t bit = place(i) - begin;
    if (bit >= 8) break;
    bits |= 1u << bit;
  }
  return bits;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_INDEX_BYTES_H_
