// BlockSum() is a sum over the threads of a block. For .cu files only.
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_BLOCK_SUM_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_BLOCK_SUM_H_

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

// Returns the sum of MINE over all threads of the block. Every thread gets the result. In each
// iteration, the first half of the threads adds the sums of the second half to its own. REQUIRES:
// all kThreads threads of the block call the function; kThreads is a power of two.
template <unsigned kThreads>
__device__ double BlockSum(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const double sum = sums[0];
  __syncthreads();  // waits, because the next call overwrites sums
  return sum;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_BLOCK_SUM_H_
