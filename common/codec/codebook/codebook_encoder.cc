#include "common/codec/codebook/codebook_encoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "common/base/status_macros.h"
#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/signs.h"

namespace thinwire {
namespace {

class CodebookCodec final : public Codec {
 public:
  CodebookCodec(const CodebookFormat& format, const CodebookSettings& settings,
                const CodebookShape& shape)
      : format_(format), settings_(settings), shape_(shape) {}

  CodecId id() const override { return format_.id(); }
  bool lossless() const override { return false; }
  size_t MaxPayloadBytes(size_t count) const override { return 1 + shape_.BodyBytes(count); }

  size_t Encode(std::span<const float> values, const RandomKeys& keys,
                std::span<std::byte> out) const override {
    return EncodeGroups(values, {}, keys, out.data());
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys& keys, CodecMemory&,
                        std::span<std::byte> out) const override {
    return EncodeGroups(gradient, residual, keys, out.data());
  }

 private:
  // Encodes GRADIENT if RESIDUAL is empty. Otherwise encodes GRADIENT + RESIDUAL and sets RESIDUAL
  // to the encoding error.
  size_t EncodeGroups(std::span<const float> gradient, std::span<float> residual,
                      const RandomKeys& keys, std::byte* out) const;
  // Writes the codes of VALUES, which form one group, to PACKED. FIRST is the index of the group's
  // first value in the shard. If RESIDUAL is not empty, it is the same array as VALUES, and the
  // function subtracts the decoded values from it.
  void EncodeCodes(std::span<const float> values, std::span<float> residual, size_t first,
                   const RandomKeys& keys, const FittedTable& fitted, std::byte* packed) const;

  const CodebookFormat& format_;
  const CodebookSettings settings_;
  const CodebookShape shape_;
};

void CodebookCodec::EncodeCodes(std::span<const float> values, std::span<float> residual,
                                size_t first, const RandomKeys& keys, const FittedTable& fitted,
                                std::byte* packed) const {
  if (shape_.bits == 1) {
    const auto entries = fitted.table.first<2>();
    if (residual.empty()) return kernels::PackSigns(values, packed);
    return kernels::PackSignsSubtract(entries, residual, packed);
  }
  constexpr size_t kAtOnce = CodebookFormat::kMaxCodesAtOnce;
  std::array<float, kernels::kLargestTable> room;
  const auto negated = std::span(room).first(fitted.table.size());
  std::ranges::transform(fitted.table, negated.begin(), [](float entry) { return -entry; });
  std::array<uint8_t, kAtOnce> code_room;
  for (size_t i = 0; i < values.size(); i += kAtOnce) {
    const size_t n = std::min(kAtOnce, values.size() - i);
    const auto codes = std::span(code_room).first(n);
    format_.Code(values.subspan(i, n), first + i, keys, fitted, codes);
    kernels::PackBits(codes, shape_.bits, packed);
    packed += kernels::PackedBytes(n, shape_.bits);
    if (!residual.empty()) kernels::LookUpAdd(codes, negated, residual.subspan(i, n));
  }
}

size_t CodebookCodec::EncodeGroups(std::span<const float> gradient, std::span<float> residual,
                                   const RandomKeys& keys, std::byte* out) const {
  out[0] = static_cast<std::byte>(id());
  std::byte* const body = out + 1;
  std::byte* const packed = body + shape_.CodesOffset(gradient.size());
  const size_t group_size = shape_.GroupSize(gradient.size());
  CodebookHead head = settings_.head;
  std::array<float, kMaxCodebookNumbers> number_room;
  const auto numbers = std::span(number_room).first(shape_.number_count);
  std::ranges::fill(numbers, settings_.number);
  std::array<float, kernels::kLargestTable> table_room;
  const auto table = std::span(table_room).first(shape_.table_size());
  for (size_t begin = 0; begin < gradient.size(); begin += group_size) {
    const size_t n = std::min(group_size, gradient.size() - begin);
    const auto added = gradient.subspan(begin, n);
    const auto values = residual.empty() ? residual : residual.subspan(begin, n);
    if (values.empty()) {
      format_.Fit(added, head, numbers);
    } else {
      format_.AddAndFit(added, values, head, numbers);
    }
    std::ranges::copy(std::as_bytes(numbers), body + shape_.NumbersOffset(begin / group_size));
    format_.FillTable(head, numbers, 1.0f, table);
    EncodeCodes(values.empty() ? added : values, values, begin, keys, {head, numbers, table},
                packed + kernels::PackedBytes(begin, shape_.bits));
  }
  std::copy_n(head.begin(), shape_.head_bytes, body);
  return MaxPayloadBytes(gradient.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodebookCodec(const CodebookFormat& format,
                                                               const CodebookSettings& settings) {
  ASSIGN_OR_RETURN(const CodebookShape shape, format.Shape(settings.head));
  return std::make_unique<CodebookCodec>(format, settings, shape);
}

}  // namespace thinwire
