#include "kernels/cuda/ops/normalize_columns.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/block/block_sum.h"
#include "kernels/cuda/block/launch.h"
#include "kernels/normalize_columns.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kThreads = kColumnParts;

// Returns the sum of a[i] * b[i] over all rows i. Each thread computes one part of the sum.
template <typename T>
__device__ double SumOfProducts(size_t rows, const double* a, const T* b) {
  double part = 0;
#pragma unroll 4
  for (size_t i = threadIdx.x; i < rows; i += kThreads) part += a[i] * static_cast<double>(b[i]);
  return BlockSum<kThreads>(part);
}

// Uses one block. Every thread reads and writes only its own rows of MATRIX and COLUMN, which are
// those with an index of threadIdx.x modulo kThreads.
__global__ void OrthonormalizeKernel(size_t rows, size_t count, float* matrix, double* column) {
  for (size_t begin = 0; begin < count; begin += rows) {
    float* const out = matrix + begin;
    for (size_t i = threadIdx.x; i < rows; i += kThreads) column[i] = static_cast<double>(out[i]);
    const double before = std::sqrt(SumOfProducts(rows, column, column));
    for (const float* other = matrix; other < out; other += rows) {
      const double product = SumOfProducts(rows, column, other);
      for (size_t i = threadIdx.x; i < rows; i += kThreads) {
        column[i] -= product * static_cast<double>(other[i]);
      }
    }
    const double after = std::sqrt(SumOfProducts(rows, column, column));
    const bool independent = after > kDependent * before;
    for (size_t i = threadIdx.x; i < rows; i += kThreads) {
      out[i] = independent ? static_cast<float>(column[i] / after) : 0.0f;
    }
  }
}

// Uses one block per column.
__global__ void ScaleColumnsKernel(size_t rows, float* matrix) {
  __shared__ uint32_t largest_bits;
  const size_t begin = blockIdx.x * rows;
  float* const column = matrix + begin;
  if (threadIdx.x == 0) largest_bits = 0;
  __syncthreads();
  // The bits of magnitudes have the order of the floats, with NaNs above infinity.
  uint32_t mine = 0;
  for (size_t i = threadIdx.x; i < rows; i += kThreads) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(column[i]) & 0x7FFFFFFF;
    if (magnitude > mine) mine = magnitude;
  }
  const uint32_t warp_largest = __reduce_max_sync(~0u, mine);
  if (threadIdx.x % 32 == 0) atomicMax(&largest_bits, warp_largest);
  __syncthreads();
  const uint32_t bits = largest_bits;
  const bool draws = bits == 0 || bits >= 0x7F800000;
  const double factor = draws ? 0 : ColumnFactor(std::bit_cast<float>(bits));
  for (size_t i = threadIdx.x; i < rows; i += kThreads) {
    column[i] =
        draws ? DrawnValue(begin + i) : static_cast<float>(static_cast<double>(column[i]) * factor);
  }
}

}  // namespace

Status Orthonormalize(size_t rows, std::span<float> matrix, std::span<double> column,
                      const Stream& stream) {
  return Launch("orthonormalize columns", OrthonormalizeKernel, {1, kThreads}, stream, rows,
                matrix.size(), matrix.data(), column.data());
}

Status ScaleColumns(size_t rows, std::span<float> matrix, const Stream& stream) {
  return Launch("scale columns", ScaleColumnsKernel, {matrix.size() / rows, kThreads}, stream, rows,
                matrix.data());
}

}  // namespace thinwire::kernels::cuda
