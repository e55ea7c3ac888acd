#include "common/codec/codebook/codebook.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/family/code_runs.h"
#include "kernels/arithmetic.h"
#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/signs.h"

namespace thinwire {
namespace {

constexpr size_t kBlock = 2048;
using TableRoom = std::array<float, kernels::kLargestTable>;

void Copy(const ByteChain& chain, size_t offset, std::span<std::byte> out) {
  if (!out.empty()) chain.Sub(offset, out.size()).CopyTo(out);
}

// Consecutive packed codes of one group, all in one piece of memory, and the table of this group.
struct PackedCodes {
  const std::byte* units;
  int bits;
  std::span<const float> table;
};

}  // namespace

size_t CodebookShape::GroupCount(size_t count) const {
  if (count == 0) return 0;
  return group == 0 ? 1 : (count + group - 1) / group;
}

size_t CodebookShape::NumbersOffset(size_t group_index) const {
  return head_bytes + group_index * number_count * sizeof(float);
}

size_t CodebookShape::CodesOffset(size_t count) const { return NumbersOffset(GroupCount(count)); }

size_t CodebookShape::BodyBytes(size_t count) const {
  return CodesOffset(count) + kernels::PackedBytes(count, bits);
}

void CodebookFormat::FillTable(const CodebookHead&, std::span<const float> numbers, float scale,
                               std::span<float> table) const {
  FillSignedTable([&](size_t code) { return numbers[code]; }, scale, table);
}

void CodebookFormat::AddAndFit(std::span<const float> gradient, std::span<float> values,
                               CodebookHead& head, std::span<float> numbers) const {
  kernels::Add(gradient, values);
  Fit(values, head, numbers);
}

void CodebookFormat::Code(std::span<const float> values, size_t, const RandomKeys&,
                          const FittedTable& fitted, std::span<uint8_t> codes) const {
  std::array<float, kernels::kLargestTable / 2> thresholds;
  const size_t count = fitted.table.size() / 2 - 1;
  for (size_t i = 0; i < count; ++i) {
    // The threshold between two adjacent codes is the mean of their magnitudes. Each magnitude is
    // halved first, because the sum of two magnitudes may exceed the largest float.
    thresholds[i] = 0.5f * fitted.table[i] + 0.5f * fitted.table[i + 1];
  }
  const int bits = std::bit_width(fitted.table.size()) - 1;
  kernels::CodesOfMagnitudes(values, std::span(thresholds).first(count), bits, codes);
}

absl::StatusOr<CodebookHead> CodebookFormat::ReadHead(const ValueBody& body) const {
  if (body.chain.size() < body.offset + head_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("head too short (expected ", head_bytes(),
                                                   " bytes, got ", body.chain.size() - body.offset,
                                                   ")"));
  }
  CodebookHead head = {};
  Copy(body.chain, body.offset, std::span(head).first(head_bytes()));
  return head;
}

void CodebookFormat::ReadTable(const ValueBody& body, const CodebookHead& head,
                               const CodebookShape& shape, size_t group_index, float scale,
                               std::span<float> table) const {
  std::array<float, kMaxCodebookNumbers> room;
  const auto numbers = std::span(room).first(shape.number_count);
  Copy(body.chain, body.offset + shape.NumbersOffset(group_index), std::as_writable_bytes(numbers));
  FillTable(head, numbers, scale, table);
}

absl::StatusOr<size_t> CodebookFormat::BodyBytes(const ValueBody& body) const {
  ASSIGN_OR_RETURN(const CodebookHead head, ReadHead(body));
  ASSIGN_OR_RETURN(const CodebookShape shape, Shape(head));
  return shape.BodyBytes(body.count);
}

absl::Status CodebookFormat::Check(const ValueBody& body) const {
  const size_t codes_in_last = body.count % kernels::kCodesInUnit;
  if (codes_in_last == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const CodebookHead head, ReadHead(body));
  ASSIGN_OR_RETURN(const CodebookShape shape, Shape(head));
  const auto bits = static_cast<size_t>(shape.bits);
  const size_t end = body.offset + shape.BodyBytes(body.count);
  uint64_t unit = 0;
  Copy(body.chain, end - bits, std::as_writable_bytes(std::span(&unit, 1)).first(bits));
  if (unit >> (codes_in_last * bits) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("nonzero padding after the last code");
}

bool CodebookFormat::IsWithin(const ValueBody& body, float limit) const {
  const CodebookHead head = ReadHead(body).value();
  const CodebookShape shape = Shape(head).value();
  TableRoom room;
  const std::span<float> table = std::span(room).first(shape.table_size());
  for (size_t group = 0; group < shape.GroupCount(body.count); ++group) {
    ReadTable(body, head, shape, group, 1.0f, table);
    for (const float entry : table) {
      if (!(std::abs(entry) <= limit)) return false;
    }
  }
  return true;
}

// Splits the COUNT codes from index FIRST on into blocks of at most kBlock codes, and calls
// use(i, n, codes) for each block in order. `codes` contains the n codes of the values first + i to
// first + i + n - 1.
template <typename Use>
void CodebookFormat::ForEachCodes(const ValueBody& body, size_t first, size_t count, float scale,
                                  const Use& use) const {
  const CodebookHead head = ReadHead(body).value();
  const CodebookShape shape = Shape(head).value();
  const auto unit_bytes = static_cast<size_t>(shape.bits);
  const size_t first_unit = first / kernels::kCodesInUnit;
  const size_t codes_offset = body.offset + shape.CodesOffset(body.count);
  const size_t group_size = shape.GroupSize(body.count);
  TableRoom room;
  const std::span<float> table = std::span(room).first(shape.table_size());
  size_t group = SIZE_MAX;
  const auto run = [&](const std::byte* units, size_t unit, size_t unit_count) {
    size_t i = unit * kernels::kCodesInUnit;
    const size_t end = std::min(count, i + unit_count * kernels::kCodesInUnit);
    while (i < end) {
      if (group != (first + i) / group_size) {
        group = (first + i) / group_size;
        ReadTable(body, head, shape, group, scale, table);
      }
      const size_t n = std::min({end - i, kBlock, (group + 1) * group_size - (first + i)});
      use(i, n, PackedCodes{units, shape.bits, table});
      units += kernels::PackedBytes(n, shape.bits);
      i += n;
    }
  };
  ForEachCodeRun(body.chain, codes_offset + first_unit * unit_bytes, unit_bytes,
                 (count + kernels::kCodesInUnit - 1) / kernels::kCodesInUnit, run);
}

void CodebookFormat::Decode(const ValueBody& body, size_t first, float scale,
                            std::span<float> out) const {
  std::array<uint8_t, kBlock> room;
  ForEachCodes(body, first, out.size(), scale, [&](size_t i, size_t n, const PackedCodes& codes) {
    const auto part = out.subspan(i, n);
    if (codes.bits == 1) return kernels::UnpackSigns(codes.units, codes.table.first<2>(), part);
    kernels::UnpackBits(codes.units, codes.bits, std::span(room).first(n));
    kernels::LookUp(std::span(room).first(n), codes.table, part);
  });
}

void CodebookFormat::DecodeAdd(const ValueBody& body, float scale, std::span<float> sum) const {
  std::array<uint8_t, kBlock> room;
  ForEachCodes(body, 0, sum.size(), scale, [&](size_t i, size_t n, const PackedCodes& codes) {
    const auto part = sum.subspan(i, n);
    if (codes.bits == 1) return kernels::UnpackSignsAdd(codes.units, codes.table.first<2>(), part);
    kernels::UnpackBits(codes.units, codes.bits, std::span(room).first(n));
    kernels::LookUpAdd(std::span(room).first(n), codes.table, part);
  });
}

}  // namespace thinwire
