// What one encoding on the device reads and writes: all of it lies there.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_CALL_H_
#define THINWIRE_CLIENT_GPU_DEVICE_CALL_H_

#include <cstddef>
#include <span>

#include "common/codec/codec.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

struct DeviceCall {
  std::span<const float> gradient;
  std::span<float> residual;  // as many, or none: GRADIENT is encoded itself
  RandomKeys keys;
  std::byte* workspace;  // from a multiple of 16 bytes on
  std::byte* out;        // where the payload begins
  const kernels::cuda::Stream& stream;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_CALL_H_
