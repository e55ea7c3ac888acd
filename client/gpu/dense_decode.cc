#include "client/gpu/dense_decode.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/codec/codebook_values.h"
#include "common/codec/scale_byte.h"
#include "common/codec/with_format.h"
#include "kernels/codes.h"
#include "kernels/cuda/ops/codes.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/pack_bits.h"
#include "kernels/cuda/ops/qsgd.h"
#include "kernels/cuda/ops/signs.h"
#include "kernels/cuda/runtime/in_order.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;
using cuda::Status;

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kOneBitEntries = 2;

std::optional<Codebook> BookOf(const ByteChain& payload, CodecId id, size_t count) {
  if (!Codebook::IsOf(id)) return std::nullopt;
  return ReadCodebook({id, payload, 1, count}).value();
}

}  // namespace

DenseDecoder::DenseDecoder(const ByteChain& payload, size_t count, float scale)
    : payload_(payload),
      id_(PayloadCodec(payload)),
      count_(count),
      scale_(scale),
      book_(BookOf(payload, id_, count)) {
  codes_offset_ = book_.has_value() ? 1 + book_->CodesOffset(count) : 1 + ScaleBytes(id_);
  code_bytes_ = payload.size() - codes_offset_;
}

size_t DenseDecoder::TableFloats() const {
  if (!book_.has_value()) return 0;
  if (id_ == CodecId::kQsgd) return book_->group_count(count_);
  if (book_->bits() == 1) return kOneBitEntries * book_->group_count(count_);
  return book_->table_size();
}

size_t DenseDecoder::TableBytes() const {
  return (TableFloats() * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
}

bool DenseDecoder::Unpacks() const {
  const int bits = book_.has_value() ? book_->bits() : 0;
  return bits > 1 && bits < 8 && id_ != CodecId::kQsgd;
}

void DenseDecoder::Stage(std::span<std::byte> staged) const {
  if (count_ == 0) return;
  if (TableFloats() > 0) {
    StageTables({reinterpret_cast<float*>(staged.data()), TableFloats()});
  }
  payload_.Sub(codes_offset_, code_bytes_).CopyTo(staged.subspan(TableBytes(), code_bytes_));
}

void DenseDecoder::StageTables(std::span<float> tables) const {
  if (id_ == CodecId::kQsgd) {
    payload_.Sub(1 + book_->NumbersOffset(0), tables.size_bytes())
        .CopyTo(std::as_writable_bytes(tables));
    return;
  }
  std::array<float, kernels::kLargestTable> room;
  const std::span<float> table = std::span(room).first(book_->table_size());
  for (size_t g = 0; g < book_->group_count(count_); ++g) {
    ReadCodebookTable({id_, payload_, 1, count_}, *book_, g, scale_, table);
    std::ranges::copy(table, tables.begin() + static_cast<ptrdiff_t>(g * table.size()));
  }
}

Status DenseDecoder::Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                            std::span<float> out, bool adds, const cuda::Stream& stream) const {
  if (count_ == 0) return {};
  const std::byte* const codes = staged.data() + TableBytes();
  if (!book_.has_value()) return DecodeNumbers(codes, out, adds, stream);
  if (id_ == CodecId::kQsgd) return DecodeQsgd(staged.data(), codes, out, adds, stream);
  const std::span<const float> tables = {reinterpret_cast<const float*>(staged.data()),
                                         TableFloats()};
  if (book_->bits() == 1) {
    const size_t group = book_->group(count_);
    return adds ? UnpackSignsAdd(codes, tables, group, out, stream)
                : UnpackSigns(codes, tables, group, out, stream);
  }
  const std::span<uint8_t> room = {reinterpret_cast<uint8_t*>(workspace.data()), workspace_bytes()};
  // A code of eight bits is a byte already.
  const std::span<const uint8_t> unpacked = {
      Unpacks() ? room.data() : reinterpret_cast<const uint8_t*>(codes), count_};
  return cuda::InOrder([&] { return UnpackBits(codes, book_->bits(), room, stream); },
                       [&] {
                         return adds ? LookUpAdd(unpacked, tables, out, stream)
                                     : LookUp(unpacked, tables, out, stream);
                       });
}

Status DenseDecoder::DecodeNumbers(const std::byte* codes, std::span<float> out, bool adds,
                                   const cuda::Stream& stream) const {
  return WithFormat(id_, [&]<typename Format>(Format) {
    float unit = 1.0f;
    if constexpr (Format::kScaled) {
      unit = UnitOfScaleByte(std::to_integer<uint8_t>(payload_.At(1)));
    }
    if (adds) return cuda::DecodeAdd<Format>(codes, unit, scale_, out, stream);
    if (scale_ == 1.0f) return cuda::Decode<Format>(codes, unit, out, stream);
    return cuda::DecodeScaled<Format>(codes, unit, scale_, out, stream);
  });
}

Status DenseDecoder::DecodeQsgd(const std::byte* numbers, const std::byte* codes,
                                std::span<float> out, bool adds, const cuda::Stream& stream) const {
  const cuda::QsgdCode code = {std::to_integer<int>(payload_.At(1)), book_->bits()};
  // They are only read.
  const cuda::QsgdPayload from = {const_cast<std::byte*>(numbers), const_cast<std::byte*>(codes)};
  return adds ? cuda::DecodeQsgdAdd(from, code, scale_, out, stream)
              : cuda::DecodeQsgd(from, code, scale_, out, stream);
}

}  // namespace thinwire::client::gpu
