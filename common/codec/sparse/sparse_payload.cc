#include "common/codec/sparse/sparse_payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/sparse/drawn_indices.h"
#include "common/codec/sparse/index_code.h"

namespace thinwire {
namespace {

constexpr size_t kMaxVarintBytes = 5;

bool DrawsIndices(const SparseFormat& format) {
  return format.indices == SparseFormat::Indices::kDrawn;
}

size_t VarintOffset(const SparseFormat& format) {
  return DrawsIndices(format) ? 1 + sizeof(uint64_t) : 1;
}

size_t VarintBytes(uint64_t value) {
  return value == 0 ? 1 : (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
}

uint64_t VarintOf(const SparseHead& head) {
  if (DrawsIndices(head.format)) return head.entry_count;
  return 2 * uint64_t{head.entry_count} + static_cast<uint64_t>(head.coder);
}

absl::StatusOr<uint64_t> ReadVarint(const ByteChain& payload, size_t offset) {
  uint64_t value = 0;
  for (size_t i = 0; i < kMaxVarintBytes; ++i) {
    if (offset + i >= payload.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("head too short (got ", payload.size(), " bytes)"));
    }
    const auto byte = std::to_integer<uint64_t>(payload.At(offset + i));
    value |= (byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    if (VarintBytes(value) == i + 1) return value;
    return absl::InvalidArgumentError(absl::StrCat("k takes too many bytes (expected ",
                                                   VarintBytes(value), ", got ", i + 1, ")"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("k takes too many bytes (expected at most ", kMaxVarintBytes, ", got more)"));
}

absl::StatusOr<SparseHead> ReadHead(const SparseFormat& format, const ByteChain& payload,
                                    size_t count) {
  if (count > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many values (expected at most ", UINT32_MAX, ")"));
  }
  SparseHead head = {.format = format};
  ASSIGN_OR_RETURN(const uint64_t varint, ReadVarint(payload, VarintOffset(format)));
  if (DrawsIndices(format)) {
    payload.Sub(1, sizeof(head.draw)).CopyTo(std::as_writable_bytes(std::span(&head.draw, 1)));
    head.entry_count = varint;
  } else {
    head.coder = static_cast<IndexCoder>(varint % 2);
    head.entry_count = varint / 2;
  }
  if (head.entry_count <= count) return head;
  return absl::InvalidArgumentError(
      absl::StrCat("k out of range (expected at most ", count, ", got ", head.entry_count, ")"));
}

}  // namespace

size_t SparseHead::bytes() const { return VarintOffset(format) + VarintBytes(VarintOf(*this)); }

void SparseHead::Put(std::byte* out) const {
  out[0] = static_cast<std::byte>(format.id);
  if (DrawsIndices(format)) std::memcpy(out + 1, &draw, sizeof(draw));
  uint64_t bits = VarintOf(*this);
  const size_t end = bytes();
  for (size_t i = VarintOffset(format); i < end; ++i) {
    out[i] = static_cast<std::byte>((bits & 0x7F) | (i + 1 == end ? 0 : 0x80));
    bits >>= 7;
  }
}

size_t SparseEntryCount(double density, size_t count, size_t least) {
  const auto rounded = static_cast<size_t>(std::llround(density * static_cast<double>(count)));
  return std::min(count, std::max(rounded, least));
}

ValueBody SparseLayout::Values(const ByteChain& payload) const {
  return {payload, head_.bytes() + 1, head_.entry_count};
}

absl::StatusOr<SparseLayout> SparseLayout::CheckLengths(const SparseFormat& format,
                                                        const ByteChain& payload, size_t count,
                                                        FindValueFormat find) {
  SparseLayout layout;
  layout.count_ = count;
  ASSIGN_OR_RETURN(layout.head_, ReadHead(format, payload, count));
  const size_t begin = layout.head_.bytes();
  if (begin >= payload.size()) {
    return absl::InvalidArgumentError("no values (expected a codec id, got 0 bytes)");
  }
  ASSIGN_OR_RETURN(layout.values_, find(payload.At(begin)));
  const ValueBody values = layout.Values(payload);
  ASSIGN_OR_RETURN(const size_t bytes, layout.values_->BodyBytes(values));
  layout.indices_offset_ = values.offset + bytes;
  // In a topk payload, the encoded indices follow the values. A randomk payload contains no indices
  // and ends after the values.
  const bool long_enough = payload.size() >= layout.indices_offset_;
  if (!long_enough || (DrawsIndices(format) && payload.size() > layout.indices_offset_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wrong length for k = ", layout.head_.entry_count, " (expected ",
                     layout.indices_offset_, " bytes, got ", payload.size(), ")"));
  }
  RETURN_IF_ERROR(layout.values_->Check(values));
  return layout;
}

absl::StatusOr<SparseLayout> SparseLayout::Check(const SparseFormat& format,
                                                 const ByteChain& payload, size_t count,
                                                 FindValueFormat find) {
  ASSIGN_OR_RETURN(const SparseLayout layout, CheckLengths(format, payload, count, find));
  if (DrawsIndices(format)) return layout;
  const size_t begin = layout.indices_offset_;
  const ByteChain indices = payload.Sub(begin, payload.size() - begin);
  std::vector<std::byte> scratch;
  RETURN_IF_ERROR(CheckIndices(layout.head_.coder, indices.Contiguous(scratch),
                               layout.head_.entry_count, count));
  return layout;
}

bool SparseLayout::IsWithin(const ByteChain& payload, float limit) const {
  return values_->IsWithin(Values(payload), limit);
}

template <typename Reader>
void SparseLayout::ForEachEntryOf(const ByteChain& payload, Reader reader,
                                  EntryFunction block) const {
  // The block size. The indices and values of a block take 16 KiB and stay in the first-level
  // cache.
  constexpr size_t kBlockValues = 2048;
  std::array<uint32_t, kBlockValues> indices;
  std::array<float, kBlockValues> values;
  for (size_t first = 0; first < head_.entry_count; first += kBlockValues) {
    const size_t n = std::min(kBlockValues, head_.entry_count - first);
    reader.Next(std::span(indices).first(n));
    values_->Decode(Values(payload), first, 1.0f, std::span(values).first(n));
    block(std::span<const uint32_t>(indices).first(n), std::span<const float>(values).first(n));
  }
}

void SparseLayout::ForEachEntry(const ByteChain& payload, EntryFunction block) const {
  if (DrawsIndices(head_.format)) {
    return ForEachEntryOf(payload, DrawnIndices(head_.draw, head_.entry_count, count_), block);
  }
  const ByteChain indices = payload.Sub(indices_offset_, payload.size() - indices_offset_);
  std::vector<std::byte> scratch;
  const IndexReader reader(head_.coder, indices.Contiguous(scratch), head_.entry_count, count_);
  ForEachEntryOf(payload, reader, block);
}

}  // namespace thinwire
