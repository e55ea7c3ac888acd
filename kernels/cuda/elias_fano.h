// Elias-Fano code of rising indices, packed on the GPU: the bytes of common/codec/index_code.h.
//
//   low part     the low l bits of number i at bit i l;  l = floor(log2(universe / count))
//   upper part   bit (index >> l) + i is set for each i
//
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_ELIAS_FANO_H_
#define THINWIRE_KERNELS_CUDA_ELIAS_FANO_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// For all: REQUIRES count <= universe < 2^32.

struct EliasFanoShape {
  int low_bits = 0;
  size_t low_bytes = 0;
  size_t upper_bytes = 0;

  size_t bytes() const { return low_bytes + upper_bytes; }
};

constexpr EliasFanoShape ShapeOfEliasFano(size_t count, size_t universe) {
  if (count == 0) return {};
  const int low_bits = std::bit_width(universe / count) - 1;
  return {.low_bits = low_bits,
          .low_bytes = (count * static_cast<size_t>(low_bits) + 7) / 8,
          .upper_bytes = (count + ((universe - 1) >> low_bits) + 1 + 7) / 8};
}

// Writes the shape's bytes to OUT, any address. REQUIRES: INDICES rise and are below UNIVERSE.
Status EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out,
                       const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_ELIAS_FANO_H_
