// PayloadStage copies payloads to the GPU and applies them to values in GPU memory with the
// decoders of device_decode.h. It owns the pinned memory, GPU memory and workspace for one payload.
//
// All functions launch their work and return. REQUIRES, for all functions: the caller waited for
// the stream since the last call. Not thread-safe.
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
  // Launches the change of VALUES by DELTA, like UlpDelta::Apply (common/codec/delta/ulp_delta.h).
  kernels::cuda::Status Apply(const UlpDelta& delta, std::span<float> values,
                              const kernels::cuda::Stream& stream);

 private:
  // Copies the staged data of DECODER, a DeviceDecoder or DeviceUlpDelta, to staged_.
  template <typename Decoder>
  kernels::cuda::Status Upload(const Decoder& decoder, const kernels::cuda::Stream& stream);

  kernels::cuda::PinnedBuffer<std::byte> pinned_;
  kernels::cuda::DeviceBuffer<std::byte> staged_;
  kernels::cuda::DeviceBuffer<std::byte> workspace_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_PAYLOAD_STAGE_H_
