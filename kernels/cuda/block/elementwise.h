// LaunchElementwise() applies one operation to every value of some arrays at memory bandwidth. For
// .cu files only.
//
// Each block handles one tile of 4096 values. In a full tile, a thread loads its four packs of four
// values before it stores the first pack. The last tile, if it is not full, and all tiles of
// unaligned arrays are handled value by value. The operation is an object of a type Op with three
// members:
//
//   // Loads the operands of values i to i + N - 1.
//   template <int N> __device__ Loaded Load(size_t i) const
//   // Computes and stores the results of values i to i + N - 1.
//   template <int N> __device__ void Store(size_t i, Loaded)
//   // Returns whether the arrays are aligned for N == 4. If not, N is always 1.
//   bool aligned() const
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_ELEMENTWISE_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_ELEMENTWISE_H_

#include <cstddef>

#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/tile.h"
#include "kernels/cuda/block/vector_access.h"
#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

// Applies OP to the calling block's tile of arrays of COUNT values. REQUIRES: all kTileThreads
// threads of the block call the function.
template <typename Op>
__device__ void ApplyToTile(Op& op, size_t count, bool aligned) {
  const size_t first = blockIdx.x * kTileValues;
  const size_t left = count - first;
  if (aligned && left >= kTileValues) {
    const size_t mine = first + threadIdx.x * kPackSize;
    constexpr size_t kStep = size_t{kTileThreads} * kPackSize;
    decltype(op.template Load<kPackSize>(0)) loaded[kPacksPerThread];
#pragma unroll
    for (int u = 0; u < kPacksPerThread; ++u) {
      loaded[u] = op.template Load<kPackSize>(mine + u * kStep);
    }
#pragma unroll
    for (int u = 0; u < kPacksPerThread; ++u) {
      op.template Store<kPackSize>(mine + u * kStep, loaded[u]);
    }
    return;
  }
  const size_t end = left < kTileValues ? count : first + kTileValues;
  for (size_t i = first + threadIdx.x; i < end; i += kTileThreads) {
    op.template Store<1>(i, op.template Load<1>(i));
  }
}

template <typename Op>
__global__ void ElementwiseKernel(Op op, size_t count, bool aligned) {
  ApplyToTile(op, count, aligned);
}

// Launches OP for values 0 to COUNT - 1. OPERATION names the launch in error messages.
template <typename Op>
Status LaunchElementwise(const char* operation, const Op& op, size_t count, const Stream& stream) {
  return Launch(operation, ElementwiseKernel<Op>, OneBlockPerTile(count), stream, op, count,
                op.aligned());
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_ELEMENTWISE_H_
