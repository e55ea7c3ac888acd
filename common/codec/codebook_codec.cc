#include "common/codec/codebook_codec.h"

#include <algorithm>
#include <array>

#include "kernels/arithmetic.h"
#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/signs.h"

namespace thinwire {
namespace {

// Halfway between two magnitudes, also where their sum is beyond a float.
float Middle(float a, float b) { return 0.5f * a + 0.5f * b; }

}  // namespace

CodebookCodec::CodebookCodec(CodecId id, const Codebook::Head& head)
    : id_(id), head_(head), book_(Codebook::Read(id, head).value()) {}

size_t CodebookCodec::Encode(std::span<const float> values, const Turn& turn,
                             std::span<std::byte> out) const {
  return Encode(values, {}, turn, out.data());
}

size_t CodebookCodec::EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                                     const Turn& turn, CodecMemory&,
                                     std::span<std::byte> out) const {
  return Encode(gradient, residual, turn, out.data());
}

void CodebookCodec::AddAndFit(std::span<const float> gradient, std::span<float> values,
                              Codebook::Head& head, std::span<float> numbers) const {
  kernels::Add(gradient, values);
  Fit(values, head, numbers);
}

void CodebookCodec::Code(std::span<const float> values, size_t, const Turn&, const Fitted& fitted,
                         std::span<uint8_t> codes) const {
  std::array<float, kernels::kLargestTable / 2> thresholds;
  const size_t count = fitted.table.size() / 2 - 1;
  for (size_t i = 0; i < count; ++i) {
    thresholds[i] = Middle(fitted.table[i], fitted.table[i + 1]);
  }
  kernels::CodesOfMagnitudes(values, std::span(thresholds).first(count), book_.bits(), codes);
}

void CodebookCodec::EncodeGroup(std::span<const float> values, std::span<float> residual,
                                size_t first, const Turn& turn, const Fitted& fitted,
                                std::byte* packed) const {
  if (book_.bits() == 1) {
    const auto entries = fitted.table.first<2>();
    if (residual.empty()) return kernels::PutSigns(values, packed);
    return kernels::TakeSigns(entries, residual, packed);
  }
  std::array<float, kernels::kLargestTable> room;
  const auto taken = std::span(room).first(fitted.table.size());
  std::ranges::transform(fitted.table, taken.begin(), [](float entry) { return -entry; });
  std::array<uint8_t, kMostAtOnce> code_room;
  for (size_t i = 0; i < values.size(); i += kMostAtOnce) {
    const size_t n = std::min(kMostAtOnce, values.size() - i);
    const auto codes = std::span(code_room).first(n);
    Code(values.subspan(i, n), first + i, turn, fitted, codes);
    kernels::PackBits(codes, book_.bits(), packed);
    packed += kernels::PackedBytes(n, book_.bits());
    if (!residual.empty()) kernels::LookUpAdd(codes, taken, residual.subspan(i, n));
  }
}

size_t CodebookCodec::Encode(std::span<const float> gradient, std::span<float> residual,
                             const Turn& turn, std::byte* out) const {
  out[0] = static_cast<std::byte>(id_);
  std::byte* const body = out + 1;
  std::byte* const packed = body + book_.CodesOffset(gradient.size());
  const size_t group_size = book_.group(gradient.size());
  Codebook::Head head = head_;
  std::array<float, Codebook::kMostNumbers> number_room;
  const auto numbers = std::span(number_room).first(book_.number_count());
  std::array<float, kernels::kLargestTable> table_room;
  const auto table = std::span(table_room).first(book_.table_size());
  for (size_t begin = 0; begin < gradient.size(); begin += group_size) {
    const size_t n = std::min(group_size, gradient.size() - begin);
    const auto added = gradient.subspan(begin, n);
    const auto owed = residual.empty() ? residual : residual.subspan(begin, n);
    if (owed.empty()) {
      Fit(added, head, numbers);
    } else {
      AddAndFit(added, owed, head, numbers);
    }
    std::ranges::copy(std::as_bytes(numbers), body + book_.NumbersOffset(begin / group_size));
    Codebook::Read(id_, head).value().FillTable(numbers, 1.0f, table);
    EncodeGroup(owed.empty() ? added : owed, owed, begin, turn, {head, numbers, table},
                packed + kernels::PackedBytes(begin, book_.bits()));
  }
  std::copy_n(head.begin(), book_.head_bytes(), body);
  return MaxPayloadBytes(gradient.size());
}

}  // namespace thinwire
