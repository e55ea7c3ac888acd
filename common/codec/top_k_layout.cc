#include "common/codec/top_k_layout.h"

#include <bit>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/codec/dense.h"
#include "common/codec/elias_fano.h"

namespace thinwire {
namespace {

constexpr size_t kVarintOffset = 2;
constexpr size_t kMaxVarintBytes = 5;

size_t VarintBytes(uint64_t value) {
  return value == 0 ? 1 : (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
}

absl::Status BadPayload(size_t count, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("topk payload of ", count, " values: ", what));
}

// The varint at kVarintOffset.
absl::StatusOr<uint64_t> ReadSentCount(const ByteChain& payload, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < kMaxVarintBytes; ++i) {
    if (kVarintOffset + i >= payload.size()) {
      return BadPayload(count, absl::StrCat("want a head, got ", payload.size(), " bytes"));
    }
    const auto byte = std::to_integer<uint64_t>(payload.At(kVarintOffset + i));
    value |= (byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    if (VarintBytes(value) == i + 1) return value;
    return BadPayload(count, absl::StrCat("want k in ", VarintBytes(value), " bytes, got ", i + 1));
  }
  return BadPayload(count, absl::StrCat("want k in at most ", kMaxVarintBytes, " bytes, got more"));
}

}  // namespace

TopKLayout LayOutTopK(CodecId values, size_t sent_count, size_t count) {
  TopKLayout layout{.values = values, .sent_count = sent_count};
  layout.indices_offset = kVarintOffset + VarintBytes(sent_count);
  layout.values_offset = layout.indices_offset + EliasFanoBytes(sent_count, count);
  layout.payload_bytes = layout.values_offset + DenseBytes(values, sent_count);
  return layout;
}

void PutTopKHead(const TopKLayout& layout, std::byte* out) {
  out[0] = static_cast<std::byte>(CodecId::kTopK);
  out[1] = static_cast<std::byte>(layout.values);
  size_t rest = layout.sent_count;
  for (size_t i = kVarintOffset; i < layout.indices_offset; ++i) {
    const bool last = i + 1 == layout.indices_offset;
    out[i] = static_cast<std::byte>((rest & 0x7F) | (last ? 0 : 0x80));
    rest >>= 7;
  }
}

absl::StatusOr<TopKLayout> ReadTopKLayout(const ByteChain& payload, size_t count) {
  if (count > UINT32_MAX) return BadPayload(count, absl::StrCat("want at most ", UINT32_MAX));
  if (payload.size() <= kVarintOffset) {
    return BadPayload(count, absl::StrCat("want a head, got ", payload.size(), " bytes"));
  }
  const absl::StatusOr<CodecId> values = CodecIdFromWire(std::to_integer<uint32_t>(payload.At(1)));
  if (!values.ok() || !IsDense(*values)) {
    return BadPayload(count, absl::StrCat("want a dense codec of the values, got ",
                                          std::to_integer<int>(payload.At(1))));
  }
  const absl::StatusOr<uint64_t> sent_count = ReadSentCount(payload, count);
  if (!sent_count.ok()) return sent_count.status();
  if (*sent_count > count) {
    return BadPayload(count, absl::StrCat("want k of at most ", count, ", got ", *sent_count));
  }
  const TopKLayout layout = LayOutTopK(*values, *sent_count, count);
  if (payload.size() != layout.payload_bytes) {
    return BadPayload(count, absl::StrCat("want ", layout.payload_bytes, " bytes for k = ",
                                          *sent_count, ", got ", payload.size()));
  }
  return layout;
}

}  // namespace thinwire
