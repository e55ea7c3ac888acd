// A unit of packed codes (kernels/pack_bits.h) as one word: eight codes of BITS bits, the first in
// the lowest. Included only by the sources of kernels.
#ifndef THINWIRE_KERNELS_CUDA_PACKED_UNIT_H_
#define THINWIRE_KERNELS_CUDA_PACKED_UNIT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {

__device__ inline void PutUnit(uint64_t word, int bits, std::byte* packed, size_t unit) {
  std::byte* const to = packed + unit * static_cast<size_t>(bits);
  for (int b = 0; b < bits; ++b) to[b] = static_cast<std::byte>(word >> (8 * b));
}

__device__ inline uint64_t TakeUnit(const std::byte* packed, int bits, size_t unit) {
  const std::byte* const from = packed + unit * static_cast<size_t>(bits);
  uint64_t word = 0;
  for (int b = 0; b < bits; ++b) word |= static_cast<uint64_t>(from[b]) << (8 * b);
  return word;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_PACKED_UNIT_H_
