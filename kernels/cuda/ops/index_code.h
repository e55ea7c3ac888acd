// Compresses ascending indices on the GPU with the codes of common/codec/sparse/index_code.h, byte
// for byte. Both codes have a low part, in which the low l bits of number i begin at bit i l, and
// an upper part, in which one bit per index is set.
//
//   Elias-Fano    number i = index[i];  l = floor(log2(universe / count))
//                 upper bit i: (number i >> l) + i
//   Golomb-Rice   number i = index[i] - index[i - 1] - 1, or index[0] for i = 0
//                 l = the least with 2^l >= 0.481 universe / count
//                 upper bit i: (sum of number j >> l over j <= i) + i
//
// A thread computes each byte of the code by itself from the indices that set its bits, so the
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
// less than UNIVERSE < 2^32; count <= universe.

// The size of an Elias-Fano code of COUNT indices.
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

// Writes ShapeOfEliasFano(indices.size(), universe).bytes() bytes to OUT, which may have any
// address.
Status EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out,
                       const Stream& stream);

// The destination of a Golomb-Rice code, whose length only the GPU knows.
struct GolombRiceCode {
  std::byte* out;   // any address
  uint32_t* size;   // becomes BEFORE + the length of the code in bytes
  uint32_t before;  // bytes of the payload before the code
};

// Returns the size of the workspace for COUNT indices, in words.
size_t GolombRiceWords(size_t count);

// Writes at most MaxIndexBytes() bytes (common/codec/sparse/index_code.h). WORDS is workspace.
// Three passes compute the upper bits by a prefix sum over tiles; a fourth packs. REQUIRES:
// words.size() == GolombRiceWords(indices.size()).
Status EncodeGolombRice(std::span<const uint32_t> indices, size_t universe,
                        std::span<uint32_t> words, const GolombRiceCode& code,
                        const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_INDEX_CODE_H_
