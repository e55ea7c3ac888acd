// Elementwise arithmetic on arrays in GPU memory:
//
//   Add     sum += values
//   Scale   values *= factor
//
// Every result is rounded to float separately. The CPU version, kernels/arithmetic.h, computes the
// same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_ARITHMETIC_H_
#define THINWIRE_KERNELS_CUDA_OPS_ARITHMETIC_H_

#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES: values.size() == sum.size(); the arrays do not overlap.
Status Add(std::span<const float> values, std::span<float> sum, const Stream& stream);

Status Scale(float factor, std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_ARITHMETIC_H_
