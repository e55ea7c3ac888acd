// What random codecs draw, from a counter, on the GPU: each number by itself, the same ones as on
// the CPU.
//
//   Draw          draws[i] = the 16 bits number i mod 4 of MixBits(draw + i / 4)      (qsgd)
//   DrawIndices   the rising indices of common/codec/drawn_indices.h                 (randomk)
//
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_DRAWS_H_
#define THINWIRE_KERNELS_CUDA_DRAWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

Status Draw(uint64_t draw, std::span<uint16_t> draws, const Stream& stream);

// REQUIRES: indices.size() <= universe < 2^32.
Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_DRAWS_H_
