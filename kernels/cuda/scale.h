// An array times a number on the GPU, each product rounded on its own. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SCALE_H_
#define THINWIRE_KERNELS_CUDA_SCALE_H_

#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// values = factor * values
Status Scale(float factor, std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SCALE_H_
