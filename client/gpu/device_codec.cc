#include "client/gpu/device_codec.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/cuda/ops/write_bytes.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {
namespace {

namespace cuda = kernels::cuda;

// Returns SPEC if its codec is dense, else the spec of the codec of the values in its payloads.
CodecSpec DenseSpec(CodecSpec spec) {
  if (!IsDense(spec.id)) spec.id = spec.values;
  return spec;
}

std::optional<SparseEncoder> MakeSparseEncoder(const CodecSpec& spec) {
  if (!IsSparse(spec.id)) return std::nullopt;
  return SparseEncoder(spec);
}

}  // namespace

absl::Status CheckDeviceEncoder(const CodecRow& row) {
  if (row.has_device_encoder) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      std::string(row.name), ": no GPU encoder (expected a codec with one, such as fp8_e4m3)"));
}

absl::StatusOr<std::unique_ptr<const DeviceCodec>> DeviceCodec::Make(const CodecSpec& spec) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Codec> twin, MakeCodec(spec));
  RETURN_IF_ERROR(CheckDeviceEncoder(RowOf(DenseSpec(spec).id)));
  return std::unique_ptr<const DeviceCodec>(new DeviceCodec(spec, std::move(twin)));
}

DeviceCodec::DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin)
    : twin_(std::move(twin)),
      encodes_on_host_(!RowOf(spec.id).has_device_encoder),
      dense_(DenseSpec(spec)),
      sparse_(MakeSparseEncoder(spec)) {}

bool DeviceCodec::SendsDense(size_t count) const {
  if (!sparse_.has_value()) return true;
  return sparse_->FallsBack() && MaxPayloadBytes(count) == dense_.PayloadBytes(count);
}

bool DeviceCodec::HasOneLength(size_t count) const {
  if (encodes_on_host_) return false;
  return SendsDense(count) || sparse_->HasOneLength();
}

size_t DeviceCodec::WorkspaceBytes(size_t count) const {
  if (encodes_on_host_) return 0;
  return SendsDense(count) ? dense_.WorkspaceBytes(count) : sparse_->WorkspaceBytes(count, dense_);
}

size_t DeviceCodec::CodesOffset(size_t count) const {
  if (encodes_on_host_) return 0;
  return SendsDense(count) ? dense_.CodesOffset(count) : sparse_->CodesOffset(count, dense_);
}

cuda::Status DeviceCodec::Encode(std::span<const float> gradient, std::span<float> residual,
                                 const RandomKeys& keys, uint32_t* threshold, CodecMemory* memory,
                                 std::span<std::byte> workspace, std::span<std::byte> out,
                                 uint32_t* size, const cuda::Stream& stream) const {
  if (encodes_on_host_) return EncodeOnHost(gradient, residual, keys, memory, out, size, stream);
  const DeviceCall call = {gradient, residual, keys, workspace.data(), out.data(), stream};
  const size_t count = gradient.size();
  if (!SendsDense(count)) return sparse_->Encode(dense_, call, threshold, size);
  const auto length = static_cast<uint32_t>(dense_.PayloadBytes(count));
  RETURN_IF_CUDA_ERROR(WriteHead(dense_.head(), call.out, length, size, stream));
  return dense_.EncodeBody(call);
}

cuda::Status DeviceCodec::EncodeOnHost(std::span<const float> gradient, std::span<float> residual,
                                       const RandomKeys& keys, CodecMemory* memory,
                                       std::span<std::byte> out, uint32_t* size,
                                       const cuda::Stream& stream) const {
  std::vector<float> values(gradient.size()), errors(gradient.size());
  std::vector<std::byte> payload(MaxPayloadBytes(values.size()));
  const auto fed_back = std::span(errors).first(residual.size());
  RETURN_IF_CUDA_ERROR(cuda::CopyToHost(gradient, std::span(values), stream));
  RETURN_IF_CUDA_ERROR(cuda::CopyToHost(std::span<const float>(residual), fed_back, stream));
  RETURN_IF_CUDA_ERROR(stream.Wait());
  CodecMemory cold;
  if (memory == nullptr) memory = &cold;
  const auto length =
      static_cast<uint32_t>(twin_->EncodeFeedback(values, errors, keys, *memory, payload));
  RETURN_IF_CUDA_ERROR(cuda::CopyToDevice(fed_back, residual, stream));
  RETURN_IF_CUDA_ERROR(
      cuda::CopyBytesToDevice(std::span(payload).first(length), out.first(length), stream));
  RETURN_IF_CUDA_ERROR(cuda::CopyToDevice({&length, 1}, std::span(size, 1), stream));
  return stream.Wait();  // the arrays on the host live until here
}

}  // namespace thinwire::client::gpu
