#include "kernels/cuda/sum_of_squares.h"

#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

// The block's sum of what its threads have, by halves: for all of them at the end.
__device__ double SumOfBlock(double mine) {
  __shared__ double sums[kTileThreads];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = kTileThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

struct SquareOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadFew<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t, const Few<float, N>& few) {
    for (int j = 0; j < N; ++j) sum += static_cast<double>(few.at[j]) * few.at[j];
  }
  bool aligned() const { return BeginsAt(values, kWidth * sizeof(float)); }

  const float* values;
  double sum = 0;
};

__global__ void SquareKernel(SquareOp op, size_t count, bool aligned, double* partial) {
  ForTile(op, count, aligned);
  const double sum = SumOfBlock(op.sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void AddUpKernel(const double* partial, size_t count, double* sum) {
  double mine = 0;
  for (size_t i = threadIdx.x; i < count; i += kTileThreads) mine += partial[i];
  const double all = SumOfBlock(mine);
  if (threadIdx.x == 0) *sum = all;
}

}  // namespace

size_t PartialSumsOfSquares(size_t count) { return OneBlockATile(count).block_count; }

Status SumOfSquares(std::span<const float> values, std::span<double> partial, double* sum,
                    const Stream& stream) {
  const SquareOp op{values.data()};
  const Grid grid = OneBlockATile(values.size());
  const Status status =
      Launch("square", SquareKernel, grid, stream, op, values.size(), op.aligned(), partial.data());
  if (!status.ok()) return status;
  return Launch("add up squares", AddUpKernel, {1, kTileThreads}, stream, partial.data(),
                grid.block_count, sum);
}

}  // namespace thinwire::kernels::cuda
