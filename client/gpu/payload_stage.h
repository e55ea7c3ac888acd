// PayloadStage: brings payloads to the GPU and applies them to values there: pinned memory, memory
// on the device, and the launches of device_decode.h and device_ulp_delta.h.
//
// All functions launch and return; REQUIRES, for all: the stream was waited for since the last
// call. Not thread-safe.
#ifndef THINWIRE_CLIENT_GPU_PAYLOAD_STAGE_H_
#define THINWIRE_CLIENT_GPU_PAYLOAD_STAGE_H_

#include <cstddef>
#include <span>

#include "common/codec/delta/ulp_delta.h"
#include "common/codec/payload.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

class PayloadStage {
 public:
  // out = decode(payload)
  kernels::cuda::Status Decode(const CheckedPayload& payload, std::span<float> out,
                               const kernels::cuda::Stream& stream);
  // sum += decode(payload)
  kernels::cuda::Status DecodeAdd(const CheckedPayload& payload, std::span<float> sum,
                                  const kernels::cuda::Stream& stream);
  // Does what UlpDelta::Apply does (common/codec/delta/ulp_delta.h).
  kernels::cuda::Status Move(const UlpDelta& delta, std::span<float> values,
                             const kernels::cuda::Stream& stream);

 private:
  // Brings what STAGED, a DeviceDecoder or DeviceUlpDelta, stages to staged_.
  template <typename Staged>
  kernels::cuda::Status Bring(const Staged& staged, const kernels::cuda::Stream& stream);

  kernels::cuda::PinnedBuffer<std::byte> pinned_;
  kernels::cuda::DeviceBuffer<std::byte> staged_;
  kernels::cuda::DeviceBuffer<std::byte> workspace_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_PAYLOAD_STAGE_H_
