// PayloadStage copies payloads to the GPU and applies them to values in GPU memory with the
// decoders of device_decode.h. It owns pinned memory, GPU memory and a workspace, each for one
// payload.
//
// All functions launch their work and return. They REQUIRE that the caller has waited for the
// stream since the previous call. Not thread-safe.
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
  // Launches out = decode(payload).
  kernels::cuda::Status Decode(const CheckedPayload& payload, std::span<float> out,
                               const kernels::cuda::Stream& stream);
  // Launches sum += decode(payload).
  kernels::cuda::Status DecodeAdd(const CheckedPayload& payload, std::span<float> sum,
                                  const kernels::cuda::Stream& stream);
  // Launches the application of DELTA to VALUES. The result equals that of UlpDelta::Apply
  // (common/codec/delta/ulp_delta.h).
  kernels::cuda::Status Apply(const UlpDelta& delta, std::span<float> values,
                              const kernels::cuda::Stream& stream);

 private:
  // Launches the copy of DECODER's staged data to staged_ on the GPU. DECODER is a DeviceDecoder or
  // a DeviceUlpDelta.
  template <typename Decoder>
  kernels::cuda::Status Upload(const Decoder& decoder, const kernels::cuda::Stream& stream);

  kernels::cuda::PinnedBuffer<std::byte> pinned_;
  kernels::cuda::DeviceBuffer<std::byte> staged_;
  kernels::cuda::DeviceBuffer<std::byte> workspace_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_PAYLOAD_STAGE_H_
