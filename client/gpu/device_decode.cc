#include "client/gpu/device_decode.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/codec/dense/number_formats.h"
#include "common/codec/dense/scaled_encode.h"
#include "kernels/codes.h"
#include "kernels/cuda/ops/codes.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/pack_bits.h"
#include "kernels/cuda/ops/qsgd.h"
#include "kernels/cuda/ops/signs.h"
#include "kernels/cuda/ops/sparse.h"
#include "kernels/cuda/ops/ulp_delta.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/number_format.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;
using cuda::Status;

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kOneBitEntries = 2;

std::optional<DenseDecoder> MakeDenseDecoder(const CheckedPayload& payload, float scale) {
  if (!payload.row().dense()) return std::nullopt;
  return DenseDecoder(payload, scale);
}

}  // namespace

DenseDecoder::DenseDecoder(const CheckedPayload& payload, float scale)
    : payload_(payload), count_(payload.count()), scale_(scale), format_(payload.row().codebook) {
  if (format_ != nullptr) {
    head_ = format_->ReadHead(payload.body()).value();
    shape_ = format_->Shape(head_).value();
    codes_offset_ = 1 + shape_.CodesOffset(count_);
  } else {
    codes_offset_ = 1 + ScaleBytes(payload.codec());
  }
  code_bytes_ = payload.bytes().size() - codes_offset_;
}

bool DenseDecoder::HasLargestMagnitudes() const {
  return format_ != nullptr && FitsLargestMagnitude(format_->fit());
}

size_t DenseDecoder::TableFloats() const {
  if (format_ == nullptr) return 0;
  if (HasLargestMagnitudes()) return shape_.GroupCount(count_);
  if (shape_.bits == 1) return kOneBitEntries * shape_.GroupCount(count_);
  return shape_.table_size();
}

size_t DenseDecoder::TableBytes() const {
  return (TableFloats() * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
}

bool DenseDecoder::Unpacks() const {
  const int bits = shape_.bits;
  return bits > 1 && bits < 8 && !HasLargestMagnitudes();
}

void DenseDecoder::Stage(std::span<std::byte> staged) const {
  if (count_ == 0) return;
  if (TableFloats() > 0) {
    StageTables({reinterpret_cast<float*>(staged.data()), TableFloats()});
  }
  payload_.bytes()
      .Sub(codes_offset_, code_bytes_)
      .CopyTo(staged.subspan(TableBytes(), code_bytes_));
}

void DenseDecoder::StageTables(std::span<float> tables) const {
  if (HasLargestMagnitudes()) {
    payload_.bytes()
        .Sub(1 + shape_.NumbersOffset(0), tables.size_bytes())
        .CopyTo(std::as_writable_bytes(tables));
    return;
  }
  std::array<float, kernels::kLargestTable> entries;
  const std::span<float> table = std::span(entries).first(shape_.table_size());
  for (size_t g = 0; g < shape_.GroupCount(count_); ++g) {
    format_->ReadTable(payload_.body(), head_, shape_, g, scale_, table);
    std::ranges::copy(table, tables.begin() + static_cast<ptrdiff_t>(g * table.size()));
  }
}

Status DenseDecoder::Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                            std::span<float> out, bool adds, const cuda::Stream& stream) const {
  if (count_ == 0) return {};
  const std::byte* const codes = staged.data() + TableBytes();
  if (format_ == nullptr) return DecodeNumbers(codes, out, adds, stream);
  if (HasLargestMagnitudes()) return DecodeQsgd(staged.data(), codes, out, adds, stream);
  const std::span<const float> tables = {reinterpret_cast<const float*>(staged.data()),
                                         TableFloats()};
  if (shape_.bits == 1) {
    const size_t group = shape_.GroupSize(count_);
    return adds ? UnpackSignsAdd(codes, tables, group, out, stream)
                : UnpackSigns(codes, tables, group, out, stream);
  }
  const std::span<uint8_t> room = {reinterpret_cast<uint8_t*>(workspace.data()), workspace_bytes()};
  if (Unpacks()) RETURN_IF_CUDA_ERROR(UnpackBits(codes, shape_.bits, room, stream));
  // Codes of eight bits are used directly; shorter codes are unpacked first.
  const std::span<const uint8_t> unpacked = {
      Unpacks() ? room.data() : reinterpret_cast<const uint8_t*>(codes), count_};
  return adds ? LookUpAdd(unpacked, tables, out, stream) : LookUp(unpacked, tables, out, stream);
}

Status DenseDecoder::DecodeNumbers(const std::byte* codes, std::span<float> out, bool adds,
                                   const cuda::Stream& stream) const {
  return WithFormat(payload_.codec(), [&]<typename Format>(Format) {
    float unit = 1.0f;
    if constexpr (Format::kScaled) {
      unit = UnitOfScaleByte(std::to_integer<uint8_t>(payload_.bytes().At(1)));
    }
    if (adds) return cuda::DecodeAdd<Format>(codes, unit, scale_, out, stream);
    if (scale_ == 1.0f) return cuda::Decode<Format>(codes, unit, out, stream);
    return cuda::DecodeScaled<Format>(codes, unit, scale_, out, stream);
  });
}

Status DenseDecoder::DecodeQsgd(const std::byte* numbers, const std::byte* codes,
                                std::span<float> out, bool adds, const cuda::Stream& stream) const {
  const cuda::QsgdCode code = {std::to_integer<int>(head_[0]), shape_.bits};
  // The pointers of QsgdPayload are mutable because encoding writes through them. Decoding only
  // reads through them.
  const cuda::QsgdPayload from = {const_cast<std::byte*>(numbers), const_cast<std::byte*>(codes)};
  return adds ? cuda::DecodeQsgdAdd(from, code, scale_, out, stream)
              : cuda::DecodeQsgd(from, code, scale_, out, stream);
}

DeviceDecoder::DeviceDecoder(const CheckedPayload& payload, float scale)
    : payload_(payload),
      scale_(scale),
      dense_(MakeDenseDecoder(payload, scale)),
      host_decodes_(!payload.row().dense() && !PayloadIsSparse(payload)),
      entry_count_(PayloadIsSparse(payload) ? payload.entries().head().entry_count : 0) {}

size_t DeviceDecoder::staged_bytes() const {
  if (dense_.has_value()) return dense_->staged_bytes();
  if (host_decodes_) return payload_.count() * sizeof(float);
  return entry_count_ * (sizeof(uint32_t) + sizeof(float));
}

size_t DeviceDecoder::workspace_bytes() const {
  return dense_.has_value() ? dense_->workspace_bytes() : 0;
}

void DeviceDecoder::Stage(std::span<std::byte> staged) const {
  if (dense_.has_value()) return dense_->Stage(staged);
  if (host_decodes_) {
    return DecodePayload(payload_, {reinterpret_cast<float*>(staged.data()), payload_.count()});
  }
  auto* indices = reinterpret_cast<uint32_t*>(staged.data());
  auto* values = reinterpret_cast<float*>(indices + entry_count_);
  ForEachPayloadEntry(payload_, [&](auto some_indices, auto some_values) {
    indices = std::ranges::copy(some_indices, indices).out;
    values = std::ranges::copy(some_values, values).out;
  });
}

DeviceDecoder::Entries DeviceDecoder::EntriesOf(std::span<const std::byte> staged) const {
  const auto* indices = reinterpret_cast<const uint32_t*>(staged.data());
  const auto* values = reinterpret_cast<const float*>(indices + entry_count_);
  return {{indices, entry_count_}, {values, entry_count_}};
}

Status DeviceDecoder::Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                             std::span<float> out, const cuda::Stream& stream) const {
  if (dense_.has_value()) return dense_->Decode(staged, workspace, out, /*adds=*/false, stream);
  if (host_decodes_) {
    return cuda::DecodeScaled<kernels::Fp32>(staged.data(), 1.0f, scale_, out, stream);
  }
  const Entries entries = EntriesOf(staged);
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(out), stream));
  return Scatter(entries.indices, entries.values, scale_, out, stream);
}

Status DeviceDecoder::DecodeAdd(std::span<const std::byte> staged, std::span<std::byte> workspace,
                                std::span<float> sum, const cuda::Stream& stream) const {
  if (dense_.has_value()) return dense_->Decode(staged, workspace, sum, /*adds=*/true, stream);
  if (host_decodes_) {
    return cuda::DecodeAdd<kernels::Fp32>(staged.data(), 1.0f, scale_, sum, stream);
  }
  const Entries entries = EntriesOf(staged);
  return ScatterAdd(entries.indices, entries.values, scale_, sum, stream);
}

size_t DeviceUlpDelta::staged_bytes() const {
  return sizeof(uint32_t) * (StagesAll() ? delta_.count() : 2 * delta_.entry_count());
}

void DeviceUlpDelta::Stage(std::span<std::byte> staged) const {
  auto* const words = reinterpret_cast<uint32_t*>(staged.data());
  if (StagesAll()) {
    std::fill_n(words, delta_.count(), 0u);
    delta_.ForEachEntry([&](auto indices, auto differences) {
      for (size_t i = 0; i < indices.size(); ++i) words[indices[i]] = differences[i];
    });
    return;
  }
  uint32_t* next = words;
  delta_.ForEachEntry([&](auto indices, auto differences) {
    std::ranges::copy(indices, next);
    std::ranges::copy(differences, next + delta_.entry_count());
    next += indices.size();
  });
}

Status DeviceUlpDelta::Apply(std::span<const std::byte> staged, std::span<float> values,
                             const cuda::Stream& stream) const {
  const std::span<const uint32_t> words = {reinterpret_cast<const uint32_t*>(staged.data()),
                                           staged.size() / sizeof(uint32_t)};
  if (StagesAll()) return AddUlps(words, values, stream);
  return AddUlpsAt(words.first(delta_.entry_count()), words.subspan(delta_.entry_count()), values,
                   stream);
}

}  // namespace thinwire::client::gpu
