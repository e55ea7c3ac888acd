#include "client/gpu/device_codec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/cuda/ops/write_bytes.h"

namespace thinwire::client::gpu {
namespace {

namespace cuda = kernels::cuda;

// Returns the spec of the codec of the sent values if SPEC is sparse, else SPEC.
CodecSpec DenseSpec(CodecSpec spec) {
  if (!IsDense(spec.id)) spec.id = spec.values;
  return spec;
}

std::optional<SparseEncoder> MakeSparseEncoder(const CodecSpec& spec) {
  if (IsDense(spec.id)) return std::nullopt;
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
  for (const CodecId id : {spec.id, DenseSpec(spec).id}) {
    RETURN_IF_ERROR(CheckDeviceEncoder(RowOf(id)));
  }
  return std::unique_ptr<const DeviceCodec>(new DeviceCodec(spec, std::move(twin)));
}

DeviceCodec::DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin)
    : twin_(std::move(twin)), dense_(DenseSpec(spec)), sparse_(MakeSparseEncoder(spec)) {}

bool DeviceCodec::SendsDense(size_t count) const {
  if (!sparse_.has_value()) return true;
  return sparse_->FallsBack() && MaxPayloadBytes(count) == dense_.PayloadBytes(count);
}

bool DeviceCodec::HasOneLength(size_t count) const {
  return SendsDense(count) || sparse_->HasOneLength();
}

size_t DeviceCodec::WorkspaceBytes(size_t count) const {
  return SendsDense(count) ? dense_.WorkspaceBytes(count) : sparse_->WorkspaceBytes(count, dense_);
}

size_t DeviceCodec::CodesOffset(size_t count) const {
  return SendsDense(count) ? dense_.CodesOffset(count) : sparse_->CodesOffset(count, dense_);
}

cuda::Status DeviceCodec::Encode(std::span<const float> gradient, std::span<float> residual,
                                 const RandomKeys& keys, uint32_t* threshold,
                                 std::span<std::byte> workspace, std::span<std::byte> out,
                                 uint32_t* size, const cuda::Stream& stream) const {
  const DeviceCall call = {gradient, residual, keys, workspace.data(), out.data(), stream};
  const size_t count = gradient.size();
  if (!SendsDense(count)) return sparse_->Encode(dense_, call, threshold, size);
  const auto length = static_cast<uint32_t>(dense_.PayloadBytes(count));
  RETURN_IF_CUDA_ERROR(WriteHead(dense_.head(), call.out, length, size, stream));
  return dense_.EncodeBody(call);
}

}  // namespace thinwire::client::gpu
