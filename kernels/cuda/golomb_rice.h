// Golomb-Rice code of rising indices, packed on the GPU: the bytes of common/codec/index_code.h.
//
//   number i     how many indices are skipped before index i
//   low part     the low l bits of number i at bit i l;  l: the least with 2^l >= .481 universe /
//                count
//   upper part   bit (the sum of number >> l up to this one) + i is set for each i; it ends with
//                the last
//
// The sums take a pass of their own, over tiles whose totals one block sums up, and the length is
// known only on the device. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_GOLOMB_RICE_H_
#define THINWIRE_KERNELS_CUDA_GOLOMB_RICE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// Where the code goes, on the device: SIZE becomes BEFORE + its bytes.
struct GolombRiceCode {
  std::byte* out;  // any address
  uint32_t* size;
  uint32_t before;
};

// The words that a call works in.
size_t GolombRiceWords(size_t count);

// Writes to at most as many bytes as MaxIndexBytes says. REQUIRES: INDICES rise and are below
// UNIVERSE < 2^32; words.size() == GolombRiceWords(indices.size()).
Status EncodeGolombRice(std::span<const uint32_t> indices, size_t universe,
                        std::span<uint32_t> words, const GolombRiceCode& code,
                        const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_GOLOMB_RICE_H_
