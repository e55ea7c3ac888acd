#include "common/codec/codebook_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/codec/value_runs.h"
#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/signs.h"

namespace thinwire {
namespace {

constexpr size_t kBlock = 2048;
using Table = std::array<float, kernels::kLargestTable>;

void Copy(const ByteChain& chain, size_t offset, std::span<std::byte> out) {
  if (!out.empty()) chain.Sub(offset, out.size()).CopyTo(out);
}

// Some codes that share a table, in one piece.
struct Codes {
  const std::byte* units;
  int bits;
  std::span<const float> table;
};

// Calls use(i, n, codes) for the codes of the N values from number first + i, in order, COUNT in
// all and at most kBlock at a time.
template <typename Use>
void ForEachCodes(const CodebookValues& values, size_t first, size_t count, float scale,
                  const Use& use) {
  const Codebook book = ReadCodebook(values).value();
  const size_t unit_bytes = static_cast<size_t>(book.bits());
  const size_t first_unit = first / kernels::kCodesInUnit;
  const size_t codes_offset = values.offset + book.CodesOffset(values.count);
  const size_t group_size = book.group(values.count);
  Table table_room;
  const std::span<float> table = std::span(table_room).first(book.table_size());
  size_t group = SIZE_MAX;
  const auto run = [&](const std::byte* units, size_t unit, size_t unit_count) {
    size_t i = unit * kernels::kCodesInUnit;
    const size_t end = std::min(count, i + unit_count * kernels::kCodesInUnit);
    while (i < end) {
      if (group != (first + i) / group_size) {
        group = (first + i) / group_size;
        ReadCodebookTable(values, book, group, scale, table);
      }
      const size_t n = std::min({end - i, kBlock, (group + 1) * group_size - (first + i)});
      use(i, n, Codes{units, book.bits(), table});
      units += kernels::PackedBytes(n, book.bits());
      i += n;
    }
  };
  ForEachRun(values.payload, codes_offset + first_unit * unit_bytes, unit_bytes,
             (count + kernels::kCodesInUnit - 1) / kernels::kCodesInUnit, run);
}

}  // namespace

absl::StatusOr<Codebook> ReadCodebook(const CodebookValues& values) {
  const size_t want = Codebook::HeadBytes(values.id);
  if (values.payload.size() < values.offset + want) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(CodecName(values.id)),
                                                   " head: want ", want, " bytes, got ",
                                                   values.payload.size() - values.offset));
  }
  Codebook::Head head = {};
  Copy(values.payload, values.offset, std::span(head).first(want));
  return Codebook::Read(values.id, head);
}

void ReadCodebookTable(const CodebookValues& values, const Codebook& book, size_t group,
                       float scale, std::span<float> table) {
  std::array<float, Codebook::kMostNumbers> room;
  const auto numbers = std::span(room).first(book.number_count());
  Copy(values.payload, values.offset + book.NumbersOffset(group), std::as_writable_bytes(numbers));
  book.FillTable(numbers, scale, table);
}

absl::StatusOr<size_t> CodebookBytes(const CodebookValues& values) {
  const absl::StatusOr<Codebook> book = ReadCodebook(values);
  if (!book.ok()) return book.status();
  return book->BodyBytes(values.count);
}

absl::Status CheckCodebookValues(const CodebookValues& values) {
  const size_t codes_in_last = values.count % kernels::kCodesInUnit;
  if (codes_in_last == 0) return absl::OkStatus();
  const Codebook book = ReadCodebook(values).value();
  const size_t end = values.offset + book.BodyBytes(values.count);
  uint64_t unit = 0;
  Copy(values.payload, end - static_cast<size_t>(book.bits()),
       std::as_writable_bytes(std::span(&unit, 1)).first(static_cast<size_t>(book.bits())));
  if (unit >> (codes_in_last * static_cast<size_t>(book.bits())) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(CodecName(values.id)), " codes: want zeros behind the last"));
}

bool CodebookIsWithin(const CodebookValues& values, float limit) {
  const Codebook book = ReadCodebook(values).value();
  const size_t group_size = book.group(values.count);
  Table table_room;
  const std::span<float> table = std::span(table_room).first(book.table_size());
  for (size_t first = 0; first < values.count; first += group_size) {
    ReadCodebookTable(values, book, first / group_size, 1.0f, table);
    for (const float entry : table) {
      if (!(std::abs(entry) <= limit)) return false;
    }
  }
  return true;
}

void DecodeCodebook(const CodebookValues& values, size_t first, float scale, std::span<float> out) {
  std::array<uint8_t, kBlock> room;
  ForEachCodes(values, first, out.size(), scale, [&](size_t i, size_t n, const Codes& codes) {
    const auto part = out.subspan(i, n);
    if (codes.bits == 1) return kernels::FromSigns(codes.units, codes.table.first<2>(), part);
    kernels::UnpackBits(codes.units, codes.bits, std::span(room).first(n));
    kernels::LookUp(std::span(room).first(n), codes.table, part);
  });
}

void DecodeCodebookAdd(const CodebookValues& values, float scale, std::span<float> sum) {
  std::array<uint8_t, kBlock> room;
  ForEachCodes(values, 0, sum.size(), scale, [&](size_t i, size_t n, const Codes& codes) {
    const auto part = sum.subspan(i, n);
    if (codes.bits == 1) return kernels::AddFromSigns(codes.units, codes.table.first<2>(), part);
    kernels::UnpackBits(codes.units, codes.bits, std::span(room).first(n));
    kernels::LookUpAdd(std::span(room).first(n), codes.table, part);
  });
}

}  // namespace thinwire
