// kernels/magnitude.h on the GPU: the largest magnitude, written to memory of the device.
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_MAGNITUDE_H_
#define THINWIRE_KERNELS_CUDA_MAGNITUDE_H_

#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

Status LargestMagnitude(std::span<const float> values, float* largest, const Stream& stream);

// REQUIRES: a.size() == b.size().
Status LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b, float* largest,
                             const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_MAGNITUDE_H_
