#include "client/gpu/payload_stage.h"

#include "client/gpu/device_decode.h"
#include "client/gpu/device_ulp_delta.h"
#include "client/gpu/reserve.h"
#include "kernels/cuda/runtime/in_order.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

template <typename Staged>
cuda::Status PayloadStage::Bring(const Staged& staged, const cuda::Stream& stream) {
  const size_t bytes = staged.staged_bytes();
  return cuda::InOrder([&] { return Reserve(bytes, pinned_); },
                       [&] { return Reserve(bytes, staged_); },
                       [&] {
                         staged.Stage(pinned_.span().first(bytes));
                         return cuda::CopyBytesToDevice(pinned_.span().first(bytes),
                                                        staged_.span().first(bytes), stream);
                       });
}

cuda::Status PayloadStage::Decode(const CheckedPayload& payload, std::span<float> out,
                                  const cuda::Stream& stream) {
  const DeviceDecoder decoder(payload);
  return cuda::InOrder([&] { return Reserve(decoder.workspace_bytes(), workspace_); },
                       [&] { return Bring(decoder, stream); },
                       [&] {
                         const auto staged = staged_.span().first(decoder.staged_bytes());
                         return decoder.Decode(staged, workspace_.span(), out, stream);
                       });
}

cuda::Status PayloadStage::DecodeAdd(const CheckedPayload& payload, std::span<float> sum,
                                     const cuda::Stream& stream) {
  const DeviceDecoder decoder(payload);
  return cuda::InOrder([&] { return Reserve(decoder.workspace_bytes(), workspace_); },
                       [&] { return Bring(decoder, stream); },
                       [&] {
                         const auto staged = staged_.span().first(decoder.staged_bytes());
                         return decoder.DecodeAdd(staged, workspace_.span(), sum, stream);
                       });
}

cuda::Status PayloadStage::Move(const UlpDelta& delta, std::span<float> values,
                                const cuda::Stream& stream) {
  const DeviceUlpDelta moves(delta);
  return cuda::InOrder([&] { return Bring(moves, stream); },
                       [&] {
                         const auto staged = staged_.span().first(moves.staged_bytes());
                         return moves.Apply(staged, values, stream);
                       });
}

}  // namespace thinwire::client::gpu
