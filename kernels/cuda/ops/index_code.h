// Compresses ascending indices on the GPU. The output has the same bytes as that of the host code
// in common/codec/sparse/index_code.h. Each code has two parts. In the low part, the lowest l bits
// of number i begin at bit l * i. In the upper part, one bit is set for each index.
//
//   Elias-Fano    number i = index[i];  l = floor(log2(universe / count))
//                 position of upper bit i: (number i >> l) + i
//   Golomb-Rice   number i = index[i] - index[i - 1] - 1, or index[0] for i = 0
//                 l = the smallest integer with 2^l >= 0.481 universe / count
//                 position of upper bit i: (sum over j <= i of (number j >> l)) + i
//
// One thread computes each byte of the code from the indices that set bits in this byte, so the
// output needs no clearing and no atomics. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_INDEX_CODE_H_
#define THINWIRE_KERNELS_CUDA_OPS_INDEX_CODE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all functions: all arrays are in GPU memory; INDICES are ascending, distinct and
// less than UNIVERSE < 2^32; COUNT, the number of indices, is at most UNIVERSE.

// The size of an Elias-Fano code: the number of low bits per index, and the number of bytes of the
// low part and of the upper part.
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

// Writes ShapeOfEliasFano(indices.size(), universe).bytes() bytes to OUT, which need not be
// aligned.
Status EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out,
                       const Stream& stream);

// The destination of a Golomb-Rice code, whose length only the GPU knows.
struct GolombRiceCode {
  std::byte* out;   // receives the code; need not be aligned
  uint32_t* size;   // set to `before` + the length of the code in bytes
  uint32_t before;  // number of payload bytes before the code
};

// Returns the size of the workspace for COUNT indices, in words.
size_t GolombRiceWords(size_t count);

// Writes the Golomb-Rice code of INDICES, at most MaxIndexBytes() bytes
// (common/codec/sparse/index_code.h). WORDS is workspace. Three passes compute the positions of the
// upper bits by a prefix sum over tiles. A fourth pass packs the bits. REQUIRES: words.size() ==
// GolombRiceWords(indices.size()).
Status EncodeGolombRice(std::span<const uint32_t> indices, size_t universe,
                        std::span<uint32_t> words, const GolombRiceCode& code,
                        const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_INDEX_CODE_H_
