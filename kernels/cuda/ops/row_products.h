// Products of a matrix M with few columns, P and Q, on the GPU. They are the products of powersgd
// (common/codec/low_rank/power_sgd.h).
//
//   MultiplyRows      P = M (u Q), where u = ReciprocalUnit(*largest)
//   MultiplyColumns   Q = M^T P, limited to magnitudes up to LIMIT
//   SubtractProduct   M -= P Q^T
//
// P and Q are stored column by column. M is stored row by row, and is a run of a matrix: its first
// row may lack values at the beginning, and its last row at the end. These values are left out of
// all sums.
//
// Every product and every sum is rounded to float separately. MultiplyRows computes the Dot of
// kernels/row_products.h for each row of M and column of Q. MultiplyColumns adds the rows of M in
// order, SubtractProduct the columns of P and Q, both starting from 0. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_ROW_PRODUCTS_H_
#define THINWIRE_KERNELS_CUDA_OPS_ROW_PRODUCTS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// The shapes of M, of P (rows x rank), and of Q (columns x rank).
struct ProductShape {
  size_t rows = 0;
  size_t columns = 0;
  size_t first_column = 0;  // the column of the first value of M
  size_t rank = 0;
};

// REQUIRES, for all functions: the arrays have the sizes that SHAPE gives, with at least one and
// fewer than 2^30 values of M; first_column < columns.

// LARGEST points to a magnitude in GPU memory.
Status MultiplyRows(std::span<const float> m, const ProductShape& shape, std::span<const float> q,
                    const float* largest, std::span<float> p, const Stream& stream);

Status MultiplyColumns(std::span<const float> m, const ProductShape& shape,
                       std::span<const float> p, float limit, std::span<float> q,
                       const Stream& stream);

Status SubtractProduct(const ProductShape& shape, std::span<const float> p,
                       std::span<const float> q, std::span<float> m, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_ROW_PRODUCTS_H_
