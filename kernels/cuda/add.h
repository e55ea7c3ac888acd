// A gradient added to a residual on the GPU, for the codecs that have no pass of their own that
// does it on the way. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_ADD_H_
#define THINWIRE_KERNELS_CUDA_ADD_H_

#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES: what kernels/add.h does.
Status Add(std::span<const float> values, std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_ADD_H_
