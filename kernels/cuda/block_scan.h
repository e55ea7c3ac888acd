// SumBefore: what the threads of a block before this one have in sum. Included only by the sources
// of kernels.
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_SCAN_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_SCAN_H_

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {

// Sets TOTAL to the sum of all VALUEs. Called by all threads of a block of kThreads, a multiple of
// 32 and at most 1024.
template <unsigned kThreads, typename T>
__device__ T SumBefore(T value, T& total) {
  __shared__ T of_warp[kThreads / 32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T up_to = value;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(~0u, up_to, distance);
    if (lane >= distance) up_to += other;
  }
  if (lane == 31) of_warp[warp] = up_to;
  __syncthreads();
  // Each warp sums up the others again, a warp for each lane.
  T before = lane < warp ? of_warp[lane] : T{0};
  total = lane < kThreads / 32 ? of_warp[lane] : T{0};
  for (int distance = 16; distance > 0; distance /= 2) {
    before += __shfl_xor_sync(~0u, before, distance);
    total += __shfl_xor_sync(~0u, total, distance);
  }
  __syncthreads();  // of_warp may be written again
  return before + up_to - value;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_SCAN_H_
