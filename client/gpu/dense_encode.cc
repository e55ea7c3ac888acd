#include "client/gpu/dense_encode.h"

#include "common/codec/dense.h"
#include "common/codec/with_format.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/scaled_encode.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::Status;

// The number formats, behind the codec's byte.
Status EncodeNumbers(CodecId id, const DeviceCall& call) {
  std::byte* const body = call.out + 1;
  return WithFormat(id, [&]<typename Format>(Format) {
    if constexpr (Format::kScaled) {
      const kernels::cuda::ScaledCodes out = {reinterpret_cast<float*>(call.workspace), body,
                                              body + kScaleBytes<Format>};
      if (call.residual.empty()) return EncodeScaled(call.gradient, out, call.stream);
      return EncodeScaledFeedback(call.gradient, call.residual, out, call.stream);
    } else {
      if (call.residual.empty()) {
        return kernels::cuda::Encode<Format>(call.gradient, 1.0f, body, call.stream);
      }
      return kernels::cuda::EncodeFeedback<Format>(call.gradient, call.residual, 1.0f, body,
                                                   call.stream);
    }
  });
}

}  // namespace

DenseEncoder::DenseEncoder(const CodecSpec& spec)
    : id_(spec.id), head_({static_cast<std::byte>(spec.id)}) {}

size_t DenseEncoder::PayloadBytes(size_t count) const { return 1 + DenseBytes(id_, count); }

size_t DenseEncoder::CodesOffset(size_t) const {
  return 1 + WithFormat(id_, []<typename Format>(Format) { return kScaleBytes<Format>; });
}

size_t DenseEncoder::WorkspaceBytes(size_t) const { return sizeof(float); }

Status DenseEncoder::EncodeBody(const DeviceCall& call) const { return EncodeNumbers(id_, call); }

}  // namespace thinwire::client::gpu
