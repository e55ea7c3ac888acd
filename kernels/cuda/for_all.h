// ForAll: one operation on every value of some arrays, as fast as memory lets it. Included only by
// the sources of kernels.
//
// A block has a tile of 4096 values. In a whole tile a thread moves four values at a time, and
// loads all that it has, four times four, before it stores the first; the last tile, and arrays
// that do not begin where four values may be moved as one, go value by value. An Op has
//
//   template <int N> __device__ Loaded Load(size_t i) const      what it needs of N values from i
//   template <int N> __device__ void Store(size_t i, Loaded)     what becomes of them
//   bool aligned() const                                         whether N may be 4
#ifndef THINWIRE_KERNELS_CUDA_FOR_ALL_H_
#define THINWIRE_KERNELS_CUDA_FOR_ALL_H_

#include <cstddef>

#include "kernels/cuda/few.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/tile.h"

namespace thinwire::kernels::cuda {

// The calling block's tile of COUNT values.
template <typename Op>
__device__ void ForTile(Op& op, size_t count, bool aligned) {
  const size_t first = blockIdx.x * kTileValues;
  const size_t rest = count - first;
  if (aligned && rest >= kTileValues) {
    const size_t mine = first + threadIdx.x * kWidth;
    constexpr size_t kStep = size_t{kTileThreads} * kWidth;
    decltype(op.template Load<kWidth>(0)) loaded[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) loaded[u] = op.template Load<kWidth>(mine + u * kStep);
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) op.template Store<kWidth>(mine + u * kStep, loaded[u]);
    return;
  }
  const size_t end = rest < kTileValues ? count : first + kTileValues;
  for (size_t i = first + threadIdx.x; i < end; i += kTileThreads) {
    op.template Store<1>(i, op.template Load<1>(i));
  }
}

template <typename Op>
__global__ void ForAllKernel(Op op, size_t count, bool aligned) {
  ForTile(op, count, aligned);
}

template <typename Op>
Status ForAll(const char* attempt, const Op& op, size_t count, const Stream& stream) {
  return Launch(attempt, ForAllKernel<Op>, OneBlockATile(count), stream, op, count, op.aligned());
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_FOR_ALL_H_
