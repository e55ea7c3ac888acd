#include "client/gpu/payload_stage.h"

#include "client/gpu/device_decode.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

template <typename Decoder>
cuda::Status PayloadStage::Upload(const Decoder& decoder, const cuda::Stream& stream) {
  const size_t bytes = decoder.staged_bytes();
  RETURN_IF_CUDA_ERROR(pinned_.Reserve(bytes));
  RETURN_IF_CUDA_ERROR(staged_.Reserve(bytes));
  decoder.Stage(pinned_.span().first(bytes));
  return cuda::CopyBytesToDevice(pinned_.span().first(bytes), staged_.span().first(bytes), stream);
}

cuda::Status PayloadStage::Decode(const CheckedPayload& payload, std::span<float> out,
                                  const cuda::Stream& stream) {
  const DeviceDecoder decoder(payload);
  RETURN_IF_CUDA_ERROR(workspace_.Reserve(decoder.workspace_bytes()));
  RETURN_IF_CUDA_ERROR(Upload(decoder, stream));
  return decoder.Decode(staged_.span().first(decoder.staged_bytes()), workspace_.span(), out,
                        stream);
}

cuda::Status PayloadStage::DecodeAdd(const CheckedPayload& payload, std::span<float> sum,
                                     const cuda::Stream& stream) {
  const DeviceDecoder decoder(payload);
  RETURN_IF_CUDA_ERROR(workspace_.Reserve(decoder.workspace_bytes()));
  RETURN_IF_CUDA_ERROR(Upload(decoder, stream));
  return decoder.DecodeAdd(staged_.span().first(decoder.staged_bytes()), workspace_.span(), sum,
                           stream);
}

cuda::Status PayloadStage::Apply(const UlpDelta& delta, std::span<float> values,
                                 const cuda::Stream& stream) {
  const DeviceUlpDelta on_device(delta);
  RETURN_IF_CUDA_ERROR(Upload(on_device, stream));
  return on_device.Apply(staged_.span().first(on_device.staged_bytes()), values, stream);
}

}  // namespace thinwire::client::gpu
