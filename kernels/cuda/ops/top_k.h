// Selects the k values of largest magnitude on the GPU, exactly, without blocking the host.
//
// The selection reads the whole array once. This pass adds the gradient, writes the sums back, and
// compacts all values at or above a threshold predicted from the last selection (the candidates),
// tile by tile. Three passes over the candidates find the k-th largest magnitude by radix select;
// two more count each tile's selected values and write them at their prefix sums, so the indices
// ascend without a sort and the lower index wins among equal magnitudes. If fewer than k values
// reach the threshold, or more than the workspace holds, the same passes read the whole array
// instead of the candidates: the result is as exact, but the array is read five more times. The
// first selection of an array has no prediction and takes that path.
//
// The CPU twin kernels/top_k.h selects the same set, also among equal magnitudes. (Exception: if
// there are more than k NaNs, because a GPU addition gives all NaNs the same bits.) Thread-safe; a
// workspace serves one stream at a time.
#ifndef THINWIRE_KERNELS_CUDA_OPS_TOP_K_H_
#define THINWIRE_KERNELS_CUDA_OPS_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/collect.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// Returns the bytes of workspace for selecting K of COUNT values. REQUIRES: k <= count < 2^31.
size_t TopKWorkspaceBytes(size_t count, size_t k);

// Writes the k = top.indices.size() selected values and their indices, in ascending order of the
// indices, to TOP. THRESHOLD is the prediction of the last selection from the same array, or 0, and
// is replaced by the next prediction. All arrays and THRESHOLD are in GPU memory. REQUIRES: as
// kernels/top_k.h; WORKSPACE has TopKWorkspaceBytes() bytes and begins at a multiple of 16.
Status SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t* threshold,
                  std::span<std::byte> workspace, const Stream& stream);

// Computes values += gradient and selects from the sums. REQUIRES: gradient.size() ==
// values.size().
Status AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                        const IndexedValues& top, uint32_t* threshold,
                        std::span<std::byte> workspace, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_TOP_K_H_
