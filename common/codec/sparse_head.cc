#include "common/codec/sparse_head.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr size_t kMaxVarintBytes = 5;

size_t VarintOffset(CodecId id) { return id == CodecId::kRandomK ? 1 + sizeof(uint64_t) : 1; }

size_t VarintBytes(uint64_t value) {
  return value == 0 ? 1 : (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
}

uint64_t VarintValue(const SparseHead& head) {
  if (head.id == CodecId::kRandomK) return head.sent_count;
  return 2 * uint64_t{head.sent_count} + static_cast<uint64_t>(head.coder);
}

absl::Status BadPayload(CodecId id, size_t count, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(CodecName(id)), " payload of ", count, " values: ", what));
}

absl::StatusOr<uint64_t> ReadVarint(const ByteChain& payload, size_t offset, CodecId id,
                                    size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < kMaxVarintBytes; ++i) {
    if (offset + i >= payload.size()) {
      return BadPayload(id, count, absl::StrCat("want a head, got ", payload.size(), " bytes"));
    }
    const auto byte = std::to_integer<uint64_t>(payload.At(offset + i));
    value |= (byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    if (VarintBytes(value) == i + 1) return value;
    return BadPayload(id, count,
                      absl::StrCat("want k in ", VarintBytes(value), " bytes, got ", i + 1));
  }
  return BadPayload(id, count,
                    absl::StrCat("want k in at most ", kMaxVarintBytes, " bytes, got more"));
}

}  // namespace

size_t SentCount(double density, size_t count, size_t least) {
  const auto rounded = static_cast<size_t>(std::llround(density * static_cast<double>(count)));
  return std::min(count, std::max(rounded, least));
}

size_t SparseHeadBytes(const SparseHead& head) {
  return VarintOffset(head.id) + VarintBytes(VarintValue(head));
}

void PutSparseHead(const SparseHead& head, std::byte* out) {
  out[0] = static_cast<std::byte>(head.id);
  if (head.id == CodecId::kRandomK) std::memcpy(out + 1, &head.draw, sizeof(head.draw));
  uint64_t rest = VarintValue(head);
  const size_t end = SparseHeadBytes(head);
  for (size_t i = VarintOffset(head.id); i < end; ++i) {
    out[i] = static_cast<std::byte>((rest & 0x7F) | (i + 1 == end ? 0 : 0x80));
    rest >>= 7;
  }
}

absl::StatusOr<SparseHead> ReadSparseHead(const ByteChain& payload, size_t count) {
  SparseHead head = {.id = static_cast<CodecId>(payload.At(0))};
  if (count > UINT32_MAX) {
    return BadPayload(head.id, count, absl::StrCat("want at most ", UINT32_MAX));
  }
  const absl::StatusOr<uint64_t> varint =
      ReadVarint(payload, VarintOffset(head.id), head.id, count);
  if (!varint.ok()) return varint.status();
  if (head.id == CodecId::kRandomK) {
    payload.Sub(1, sizeof(head.draw)).CopyTo(std::as_writable_bytes(std::span(&head.draw, 1)));
    head.sent_count = *varint;
  } else {
    head.coder = static_cast<IndexCoder>(*varint % 2);
    head.sent_count = *varint / 2;
  }
  if (head.sent_count <= count) return head;
  return BadPayload(head.id, count,
                    absl::StrCat("want k of at most ", count, ", got ", head.sent_count));
}

}  // namespace thinwire
