// Selects the k values of largest magnitude on the GPU, exactly, without blocking the host.
//
// The first pass reads the whole array, adds the gradient and writes the sums back. Tile by tile,
// it collects the candidates: the values whose magnitude is at least a threshold, which the
// previous selection predicted. Three passes over the candidates find the k-th largest magnitude by
// radix select. Two more passes count each tile's selected values and write them to positions given
// by prefix sums. The indices are therefore ascending without a sort, and the lower index wins
// among equal magnitudes. If there are fewer than k candidates, or more than fit in the workspace,
// the five later passes read the whole array instead of the candidates. The result is equally
// exact. The first selection from an array has no prediction, so its later passes always read the
// whole array.
//
// The CPU version, kernels/select/top_k.h, selects the same values, also among equal magnitudes. The only
// exception is an array with more than k NaNs: NaNs are ordered by their bits, but a GPU addition
// gives all NaNs the same bits. Thread-safe, but only one stream at a time may use a workspace.
#ifndef THINWIRE_KERNELS_CUDA_OPS_TOP_K_H_
#define THINWIRE_KERNELS_CUDA_OPS_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/select/collect.h"

namespace thinwire::kernels::cuda {

// Returns the size in bytes of the workspace for selecting K of COUNT values. REQUIRES: k <= count
// < 2^31.
size_t TopKWorkspaceBytes(size_t count, size_t k);

// Writes the k = top.indices.size() selected values and their indices, in ascending order of the
// indices, to TOP. THRESHOLD is the prediction that the previous selection from the same array
// stored, or 0 if there was none; SelectTopK() replaces it by the next prediction. All arrays and
// THRESHOLD are in GPU memory. REQUIRES: the conditions of kernels/select/top_k.h; WORKSPACE has
// TopKWorkspaceBytes() bytes and begins at a multiple of 16.
Status SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t* threshold,
                  std::span<std::byte> workspace, const Stream& stream);

// Computes values += gradient and selects from the sums. REQUIRES: gradient.size() ==
// values.size().
Status AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                        const IndexedValues& top, uint32_t* threshold,
                        std::span<std::byte> workspace, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_TOP_K_H_
