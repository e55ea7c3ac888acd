// kernels/top_k.h on the GPU: the k values of largest magnitude, exactly, without the host's
// waiting.
//
// Predict and refine: one pass adds, writes back and collects what is at or above the magnitude
// that the last selection left, tile by tile. Three passes over what was collected find the k-th by
// the digits of its magnitude; a count of each tile says where its part of the result begins, so
// the indices rise without a sort and of equal magnitudes the lower index is taken. Where too few
// or too many were collected, which the device finds out, the same passes go over all the values:
// slower by reading them five times more, and as exact. So does a first selection, which knows no
// magnitude.
//
// The set is the CPU's, also its ties. (Of NaNs, if they are more than k: an addition here leaves
// them all the same bits.) Thread-safe; a workspace serves one stream at a time.
#ifndef THINWIRE_KERNELS_CUDA_TOP_K_H_
#define THINWIRE_KERNELS_CUDA_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/collect.h"
#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// What a selection of K of COUNT values works in. REQUIRES: k <= count < 2^31.
size_t TopKWorkspaceBytes(size_t count, size_t k);

// All on the device. COLLECT_FROM is what the last selection of the same array left there, or 0.
// REQUIRES: what kernels/top_k.h does; WORKSPACE begins at 16 bytes and has TopKWorkspaceBytes.
Status SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t* collect_from,
                  std::span<std::byte> workspace, const Stream& stream);

// The same after values += gradient. REQUIRES: gradient.size() == values.size().
Status AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                        const IndexedValues& top, uint32_t* collect_from,
                        std::span<std::byte> workspace, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_TOP_K_H_
