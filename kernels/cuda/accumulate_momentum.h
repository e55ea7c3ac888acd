// kernels/accumulate_momentum.h on the GPU: momentum where the gradient is made. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_ACCUMULATE_MOMENTUM_H_
#define THINWIRE_KERNELS_CUDA_ACCUMULATE_MOMENTUM_H_

#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both: what kernels/accumulate_momentum.h does.
Status AccumulateMomentum(float momentum, std::span<const float> gradient, std::span<float> u,
                          const Stream& stream);

Status AccumulateNesterov(float momentum, std::span<const float> gradient, std::span<float> u,
                          std::span<float> direction, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_ACCUMULATE_MOMENTUM_H_
