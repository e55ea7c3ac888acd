// The rising indices of common/codec/drawn_indices.h, which a counter stands for (randomk), on the
// GPU: each by itself. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_DRAWS_H_
#define THINWIRE_KERNELS_CUDA_DRAWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES: indices.size() <= universe < 2^32.
Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_DRAWS_H_
