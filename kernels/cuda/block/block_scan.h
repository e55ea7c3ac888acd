// BlockExclusiveSum() is an exclusive prefix sum over the threads of a block. For .cu files only.
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_BLOCK_SCAN_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_BLOCK_SCAN_H_

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

// Returns the sum of VALUE over all threads of the block whose index is smaller than that of the
// calling thread, and sets TOTAL to the sum over all threads of the block. REQUIRES: all kThreads
// threads of the block call the function; kThreads is a multiple of 32 and at most 1024.
template <unsigned kThreads, typename T>
__device__ T BlockExclusiveSum(T value, T& total) {
  __shared__ T warp_sums[kThreads / 32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T inclusive = value;  // prefix sum within the warp
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(~0u, inclusive, distance);
    if (lane >= distance) inclusive += other;
  }
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  // Every warp computes both the sum of all warps before it and the sum of all warps. Lane i
  // contributes the sum of warp i.
  T before = lane < warp ? warp_sums[lane] : T{0};
  total = lane < kThreads / 32 ? warp_sums[lane] : T{0};
  for (int distance = 16; distance > 0; distance /= 2) {
    before += __shfl_xor_sync(~0u, before, distance);
    total += __shfl_xor_sync(~0u, total, distance);
  }
  __syncthreads();  // waits, because the next call overwrites warp_sums
  return before + inclusive - value;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_BLOCK_SCAN_H_
