#include "client/gpu/dense_encode.h"

#include "common/codec/dense/dense.h"
#include "common/codec/dense/number_formats.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/scaled_encode.h"

namespace thinwire::client::gpu {
namespace {

namespace cuda = kernels::cuda;

// Returns the parts of a payload in fp8_e4m3.
cuda::ScaledCodes ScaledCodesOf(const DeviceCall& call) {
  std::byte* const scale_byte = call.out + 1;
  return {reinterpret_cast<float*>(call.workspace), scale_byte,
          scale_byte + kScaleBytes<kernels::Fp8E4m3>};
}

// The two functions below encode and decode the body of a payload whose codec is a number format.
// The body begins after the first byte, the codec ID.

cuda::Status EncodeNumbers(CodecId id, const DeviceCall& call) {
  std::byte* const body = call.out + 1;
  return WithFormat(id, [&]<typename Format>(Format) {
    if constexpr (Format::kScaled) {
      const cuda::ScaledCodes out = ScaledCodesOf(call);
      if (call.residual.empty()) return EncodeScaled(call.gradient, out, call.stream);
      return EncodeScaledFeedback(call.gradient, call.residual, out, call.stream);
    } else {
      if (call.residual.empty()) {
        return cuda::Encode<Format>(call.gradient, 1.0f, body, call.stream);
      }
      return cuda::EncodeFeedback<Format>(call.gradient, call.residual, 1.0f, body, call.stream);
    }
  });
}

cuda::Status DecodeNumbers(CodecId id, const DeviceCall& call, std::span<float> out) {
  std::byte* const body = call.out + 1;
  return WithFormat(id, [&]<typename Format>(Format) {
    if constexpr (Format::kScaled) {
      return DecodeScaledCodes(ScaledCodesOf(call), out, call.stream);
    } else {
      return cuda::Decode<Format>(body, 1.0f, out, call.stream);
    }
  });
}

// Returns CALL with the body of the payload as output.
DeviceCall BodyOf(const DeviceCall& call) {
  return {call.gradient, call.residual, call.keys, call.workspace, call.out + 1, call.stream};
}

std::optional<CodebookEncoder> MakeCodebookEncoder(const CodecSpec& spec) {
  const CodecRow& row = RowOf(spec.id);
  if (row.codebook == nullptr) return std::nullopt;
  return CodebookEncoder(*row.codebook, row.SettingsOf(spec));
}

}  // namespace

DenseEncoder::DenseEncoder(const CodecSpec& spec)
    : id_(spec.id), codebook_(MakeCodebookEncoder(spec)), head_({static_cast<std::byte>(spec.id)}) {
  if (!codebook_.has_value()) return;
  const std::vector<std::byte> settings = codebook_->Head();
  head_.insert(head_.end(), settings.begin(), settings.end());
}

size_t DenseEncoder::PayloadBytes(size_t count) const {
  if (codebook_.has_value()) return 1 + codebook_->shape().BodyBytes(count);
  return 1 + DenseBytes(id_, count);
}

size_t DenseEncoder::CodesOffset(size_t count) const {
  if (codebook_.has_value()) return 1 + codebook_->shape().CodesOffset(count);
  return 1 + ScaleBytes(id_);
}

size_t DenseEncoder::WorkspaceBytes(size_t count) const {
  return codebook_.has_value() ? codebook_->WorkspaceBytes(count) : sizeof(float);
}

cuda::Status DenseEncoder::EncodeBody(const DeviceCall& call) const {
  if (!codebook_.has_value()) return EncodeNumbers(id_, call);
  return codebook_->Encode(BodyOf(call));
}

cuda::Status DenseEncoder::DecodeBody(const DeviceCall& call, std::span<float> out) const {
  if (!codebook_.has_value()) return DecodeNumbers(id_, call, out);
  return codebook_->Decode(BodyOf(call), out);
}

}  // namespace thinwire::client::gpu
