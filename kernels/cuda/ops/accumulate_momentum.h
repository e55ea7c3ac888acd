// Momentum u of a gradient on the GPU, elementwise:
//
//   AccumulateMomentum   u = momentum * u + gradient
//   AccumulateNesterov   u = momentum * u + gradient;  direction = gradient + momentum * u
//
// The CPU version, kernels/accumulate_momentum.h, computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_ACCUMULATE_MOMENTUM_H_
#define THINWIRE_KERNELS_CUDA_OPS_ACCUMULATE_MOMENTUM_H_

#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both functions: all arrays are in GPU memory, have the same length and do not
// overlap.

Status AccumulateMomentum(float momentum, std::span<const float> gradient, std::span<float> u,
                          const Stream& stream);

Status AccumulateNesterov(float momentum, std::span<const float> gradient, std::span<float> u,
                          std::span<float> direction, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_ACCUMULATE_MOMENTUM_H_
