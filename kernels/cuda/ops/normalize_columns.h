// Normalizes the columns of a small matrix on the GPU. The matrix is stored column by column.
//
//   Orthonormalize   makes the columns orthogonal to each other and of length 1
//   ScaleColumns     scales each column to a largest magnitude of at least 1 and below 2
//
// The CPU version, kernels/normalize_columns.h, computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_NORMALIZE_COLUMNS_H_
#define THINWIRE_KERNELS_CUDA_OPS_NORMALIZE_COLUMNS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both functions: MATRIX consists of columns of ROWS values.

// COLUMN is workspace. REQUIRES: column.size() == rows.
Status Orthonormalize(size_t rows, std::span<float> matrix, std::span<double> column,
                      const Stream& stream);

Status ScaleColumns(size_t rows, std::span<float> matrix, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_NORMALIZE_COLUMNS_H_
