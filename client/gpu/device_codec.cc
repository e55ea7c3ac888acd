#include "client/gpu/device_codec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/low_rank/power_sgd.h"
#include "kernels/cuda/ops/write_bytes.h"

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
  for (const CodecId id : {spec.id, DenseSpec(spec).id}) {
    RETURN_IF_ERROR(CheckDeviceEncoder(RowOf(id)));
  }
  return std::unique_ptr<const DeviceCodec>(new DeviceCodec(spec, std::move(twin)));
}

DeviceCodec::DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin)
    : twin_(std::move(twin)),
      powersgd_rank_(spec.id == CodecId::kPowerSgd ? spec.powersgd_rank : 0),
      dense_(DenseSpec(spec)),
      sparse_(MakeSparseEncoder(spec)) {}

bool DeviceCodec::SendsSparse(size_t count) const {
  if (!sparse_.has_value()) return false;
  return !sparse_->FallsBack() || twin_->MaxPayloadBytes(count) != dense_.PayloadBytes(count);
}

std::optional<LowRankEncoder> DeviceCodec::LowRankOf(size_t count, const MatrixRun& matrix) const {
  if (powersgd_rank_ == 0) return std::nullopt;
  const std::optional<LowRankHead> head = PowerSgdHead(
      powersgd_rank_, matrix, count, [this](size_t values) { return dense_.PayloadBytes(values); });
  if (!head.has_value()) return std::nullopt;
  return LowRankEncoder(*head, dense_);
}

size_t DeviceCodec::MaxPayloadBytes(size_t count, const MatrixRun& matrix) const {
  const auto low_rank = LowRankOf(count, matrix);
  return low_rank.has_value() ? low_rank->PayloadBytes() : twin_->MaxPayloadBytes(count);
}

bool DeviceCodec::HasOneLength(size_t count) const {
  return !SendsSparse(count) || sparse_->HasOneLength();
}

size_t DeviceCodec::WorkspaceBytes(size_t count, const MatrixRun& matrix) const {
  const auto low_rank = LowRankOf(count, matrix);
  if (low_rank.has_value()) return low_rank->WorkspaceBytes();
  return SendsSparse(count) ? sparse_->WorkspaceBytes(count, dense_) : dense_.WorkspaceBytes(count);
}

size_t DeviceCodec::CodesOffset(size_t count, const MatrixRun& matrix) const {
  const auto low_rank = LowRankOf(count, matrix);
  if (low_rank.has_value()) return low_rank->CodesOffset();
  return SendsSparse(count) ? sparse_->CodesOffset(count, dense_) : dense_.CodesOffset(count);
}

cuda::Status DeviceCodec::Encode(std::span<const float> gradient, std::span<float> residual,
                                 const RandomKeys& keys, DeviceCodecMemory& memory,
                                 std::span<std::byte> workspace, std::span<std::byte> out,
                                 uint32_t* size, const cuda::Stream& stream) const {
  const DeviceCall call = {gradient, residual, keys, workspace.data(), out.data(), stream};
  const size_t count = gradient.size();
  const auto low_rank = LowRankOf(count, memory.matrix);
  if (low_rank.has_value()) return low_rank->Encode(call, memory.warm_start, size);
  if (SendsSparse(count)) return sparse_->Encode(dense_, call, memory.threshold, size);
  const auto length = static_cast<uint32_t>(dense_.PayloadBytes(count));
  RETURN_IF_CUDA_ERROR(WriteHead(dense_.head(), call.out, length, size, stream));
  return dense_.EncodeBody(call);
}

}  // namespace thinwire::client::gpu
