#include "kernels/cuda/ops/row_products.h"

#include <cstdint>

#include "kernels/cuda/block/launch.h"
#include "kernels/row_products.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kParts = kDotParts;
// Few threads have many values to add, so small blocks spread them over more multiprocessors.
constexpr unsigned kColumnThreads = 64;

// Computes P with kParts threads per value. Threads of one row are adjacent, because they read the
// same values of M.
__global__ void MultiplyRowsKernel(const float* m, size_t count, ProductShape shape, const float* q,
                                   const float* largest, float* p) {
  const size_t item = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) / kParts;
  const size_t row = item / shape.rank, k = item % shape.rank;
  const unsigned part = threadIdx.x % kParts;
  float sum = 0;
  if (row < shape.rows) {
    const size_t column = row == 0 ? shape.first_column : 0;
    const size_t first = row * shape.columns + column - shape.first_column;
    const size_t left = count - first, whole = shape.columns - column;
    const size_t length = left < whole ? left : whole;
    const float* const of_m = m + first;
    const float* const of_q = q + k * shape.columns + column;
    const float reciprocal = ReciprocalUnit(*largest);
#pragma unroll 8
    for (size_t i = part; i < length; i += kParts) sum += of_m[i] * (of_q[i] * reciprocal);
  }
  float total = 0;
  for (unsigned other = 0; other < kParts; ++other) {
    total += __shfl_sync(~0u, sum, static_cast<int>(threadIdx.x / kParts * kParts + other) % 32);
  }
  if (row < shape.rows && part == 0) p[k * shape.rows + row] = total;
}

// Computes Q with one thread per value. Row 0 of M begins in column first_column.
__global__ void MultiplyColumnsKernel(const float* m, size_t count, ProductShape shape,
                                      const float* p, float limit, float* q) {
  const size_t item = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= shape.columns * shape.rank) return;
  const size_t k = item / shape.columns, column = item % shape.columns;
  const size_t row = column < shape.first_column ? 1 : 0;
  const float* of_p = p + k * shape.rows + row;
  float sum = 0;
#pragma unroll 8
  for (size_t i = row * shape.columns + column - shape.first_column; i < count;
       i += shape.columns) {
    sum += *of_p++ * m[i];
  }
  q[item] = sum < -limit ? -limit : limit < sum ? limit : sum;
}

__global__ void SubtractProductKernel(ProductShape shape, const float* p, const float* q, float* m,
                                      size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  // Divides numbers of 32 bits, because a division of 64 bits takes several times as long.
  const auto columns = static_cast<uint32_t>(shape.columns);
  const auto position = static_cast<uint32_t>(shape.first_column + i);
  const size_t row = position / columns, column = position % columns;
  float sum = 0;
  for (size_t k = 0; k < shape.rank; ++k) {
    sum += p[k * shape.rows + row] * q[k * shape.columns + column];
  }
  m[i] -= sum;
}

}  // namespace

Status MultiplyRows(std::span<const float> m, const ProductShape& shape, std::span<const float> q,
                    const float* largest, std::span<float> p, const Stream& stream) {
  return Launch("multiply rows", MultiplyRowsKernel, OneThreadPerItem(p.size() * kParts), stream,
                m.data(), m.size(), shape, q.data(), largest, p.data());
}

Status MultiplyColumns(std::span<const float> m, const ProductShape& shape,
                       std::span<const float> p, float limit, std::span<float> q,
                       const Stream& stream) {
  return Launch("multiply columns", MultiplyColumnsKernel,
                OneThreadPerItem(q.size(), kColumnThreads), stream, m.data(), m.size(), shape,
                p.data(), limit, q.data());
}

Status SubtractProduct(const ProductShape& shape, std::span<const float> p,
                       std::span<const float> q, std::span<float> m, const Stream& stream) {
  return Launch("subtract a product", SubtractProductKernel, OneThreadPerItem(m.size()), stream,
                shape, p.data(), q.data(), m.data(), m.size());
}

}  // namespace thinwire::kernels::cuda
