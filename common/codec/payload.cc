#include "common/codec/payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/transform/dct_top_k.h"
#include "kernels/arithmetic.h"
#include "kernels/reductions.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

absl::StatusOr<const ValueFormat*> FindDense(std::byte byte) {
  ASSIGN_OR_RETURN(const CodecId id, CodecIdFromWire(std::to_integer<uint32_t>(byte)));
  if (const ValueFormat* values = RowOf(id).values; values != nullptr) return values;
  return absl::InvalidArgumentError(absl::StrCat(
      "values not in a dense codec (expected a dense one, got ", std::string(CodecName(id)), ")"));
}

bool IsLowRank(const CodecRow& row) { return row.family == CodecFamily::kLowRank; }
bool IsTransformed(const CodecRow& row) { return row.family == CodecFamily::kTransform; }

absl::Status CheckDense(const ValueFormat& format, const ValueBody& body) {
  ASSIGN_OR_RETURN(const size_t body_bytes, format.BodyBytes(body));
  if (body.chain.size() != body.offset + body_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("wrong length (expected ",
                                                   body.offset + body_bytes, " bytes, got ",
                                                   body.chain.size(), ")"));
  }
  return format.Check(body);
}

}  // namespace

absl::StatusOr<CheckedPayload> CheckedPayload::Make(ByteChain payload, size_t count,
                                                    bool check_indices) {
  if (payload.empty()) {
    return absl::InvalidArgumentError("payload: no bytes (expected a codec id, got 0 bytes)");
  }
  ASSIGN_OR_RETURN(const CodecId id, CodecIdFromWire(std::to_integer<uint32_t>(payload.At(0))));
  CheckedPayload checked;
  checked.bytes_ = std::move(payload);
  checked.count_ = count;
  checked.row_ = &RowOf(id);
  absl::Status status;
  if (checked.row_->dense()) {
    status = CheckDense(*checked.row_->values, checked.body());
  } else if (IsLowRank(*checked.row_)) {
    auto low_rank = LowRankLayout::Check(checked.bytes_, count, FindDense);
    status = low_rank.status();
    if (status.ok()) checked.low_rank_ = *std::move(low_rank);
  } else {
    const auto check = check_indices ? &SparseLayout::Check : &SparseLayout::CheckLengths;
    auto entries = check(*checked.row_->sparse, checked.bytes_, count, FindDense);
    status = entries.status();
    if (status.ok()) checked.entries_ = *std::move(entries);
  }
  if (status.ok()) return checked;
  return absl::InvalidArgumentError(absl::StrCat(std::string(checked.row_->name), " payload of ",
                                                 count, " values: ", status.message()));
}

absl::StatusOr<CheckedPayload> CheckPayload(ByteChain payload, size_t count) {
  return CheckedPayload::Make(std::move(payload), count, /*check_indices=*/true);
}

CheckedPayload EncodedPayload(ByteChain payload, size_t count) {
  return CheckedPayload::Make(std::move(payload), count, /*check_indices=*/false).value();
}

ByteChain LendFp32(std::span<const float> values, std::shared_ptr<const void> owner) {
  static_assert(std::endian::native == std::endian::little);
  static constexpr std::byte kId{static_cast<uint8_t>(CodecId::kFp32)};
  ByteChain payload({&kId, 1}, nullptr);
  payload.Append(std::as_bytes(values), std::move(owner));
  return payload;
}

bool PayloadIsFinite(const CheckedPayload& payload) {
  return PayloadIsWithin(payload, std::numeric_limits<float>::max());
}

bool PayloadIsWithin(const CheckedPayload& payload, float limit) {
  if (PayloadIsSparse(payload)) return payload.entries().IsWithin(payload.bytes(), limit);
  if (IsLowRank(payload.row())) return payload.low_rank().IsWithin(payload.bytes(), limit);
  if (IsTransformed(payload.row())) {
    bool within = true;
    DecodePayloadInBlocks(payload, 1.0f, [&](size_t, std::span<const float> values) {
      within = within && kernels::LargestMagnitude(values) <= limit;
    });
    return within;
  }
  return payload.row().values->IsWithin(payload.body(), limit);
}

void DecodePayload(const CheckedPayload& payload, std::span<float> out) {
  DecodePayloadScaled(payload, 1.0f, out);
}

void DecodePayloadScaled(const CheckedPayload& payload, float scale, std::span<float> out) {
  if (payload.row().dense()) return payload.row().values->Decode(payload.body(), 0, scale, out);
  if (!PayloadIsSparse(payload)) {
    return DecodePayloadInBlocks(payload, scale, [&](size_t first, std::span<const float> values) {
      std::copy(values.begin(), values.end(), out.subspan(first).begin());
    });
  }
  std::ranges::fill(out, 0.0f);
  ForEachPayloadEntry(
      payload, [&](auto indices, auto values) { kernels::Scatter(indices, values, scale, out); });
}

void DecodePayloadAdd(const CheckedPayload& payload, float scale, std::span<float> sum) {
  if (payload.row().dense()) return payload.row().values->DecodeAdd(payload.body(), scale, sum);
  if (!PayloadIsSparse(payload)) {
    return DecodePayloadInBlocks(payload, scale, [&](size_t first, std::span<const float> values) {
      kernels::Add(values, sum.subspan(first, values.size()));
    });
  }
  ForEachPayloadEntry(payload, [&](auto indices, auto values) {
    kernels::ScatterAdd(indices, values, scale, sum);
  });
}

void DecodePayloadInBlocks(const CheckedPayload& payload, float scale, BlockFunction block) {
  const size_t count = payload.count();
  std::array<float, kDecodedBlock> room;
  // Calls block() for values that decode(first, values) decodes.
  const auto for_each_block = [&](const auto& decode) {
    for (size_t first = 0; first < count; first += room.size()) {
      const auto values = std::span(room).first(std::min(room.size(), count - first));
      decode(first, values);
      block(first, values);
    }
  };
  if (payload.row().dense()) {
    return for_each_block([&](size_t first, std::span<float> values) {
      payload.row().values->Decode(payload.body(), first, scale, values);
    });
  }
  if (IsLowRank(payload.row())) {
    const LowRankFactors factors = payload.low_rank().Factors(payload.bytes());
    return for_each_block([&](size_t first, std::span<float> values) {
      factors.Decode(first, values);
      kernels::ScaleFinite(scale, values, values);
    });
  }
  room.fill(0.0f);
  const bool transformed = IsTransformed(payload.row());
  size_t first = 0;
  const auto finish_block = [&] {
    const size_t n = std::min(room.size(), count - first);
    const auto values = std::span(room).first(n);
    if (transformed) {
      InverseTransform(values);  // blocks consist of whole chunks, except at the end of the shard
      kernels::ScaleFinite(scale, values, values);
    }
    block(first, values);
    room.fill(0.0f);
    first += n;
  };
  const float entry_scale = transformed ? 1.0f : scale;
  payload.entries().ForEachEntry(payload.bytes(), [&](auto indices, auto values) {
    for (size_t j = 0; j < indices.size(); ++j) {
      while (indices[j] - first >= room.size()) finish_block();
      room[indices[j] - first] = entry_scale * values[j];
    }
  });
  while (first < count) finish_block();
}

bool PayloadIsSparse(const CheckedPayload& payload) {
  return payload.row().family == CodecFamily::kSparse;
}

void ForEachPayloadEntry(const CheckedPayload& payload, EntryFunction block) {
  payload.entries().ForEachEntry(payload.bytes(), block);
}

}  // namespace thinwire
