#include "common/codec/low_rank/low_rank_payload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/family/codec_id.h"
#include "kernels/reductions.h"
#include "kernels/row_products.h"

namespace thinwire {
namespace {

// The sum of `rank` rounded products is at most this factor larger than the exact sum.
constexpr double kRounding = 1 + 0x1p-18;

absl::StatusOr<LowRankHead> ReadHead(const ByteChain& payload, size_t count) {
  if (payload.size() < LowRankHead::kBytes) {
    return absl::InvalidArgumentError(absl::StrCat("head too short (expected ", LowRankHead::kBytes,
                                                   " bytes, got ", payload.size(), ")"));
  }
  if (count > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many values (expected at most ", UINT32_MAX, ")"));
  }
  std::array<uint32_t, 2> numbers;
  payload.Sub(2, sizeof(numbers)).CopyTo(std::as_writable_bytes(std::span(numbers)));
  const auto [columns, first_column] = numbers;
  const LowRankHead head = {.rank = std::to_integer<size_t>(payload.At(1)),
                            .matrix = {.columns = columns, .first_column = first_column},
                            .count = count};
  if (head.rank < 1 || head.rank > kMostLowRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank out of range (expected 1 to ", kMostLowRank, ", got ", head.rank, ")"));
  }
  if (columns < 1 || columns > count) {
    return absl::InvalidArgumentError(
        absl::StrCat("columns out of range (expected 1 to ", count, ", got ", columns, ")"));
  }
  if (first_column >= columns) {
    return absl::InvalidArgumentError(absl::StrCat("first column out of range (expected less than ",
                                                   columns, ", got ", first_column, ")"));
  }
  if (head.p_count() + head.q_count() > count) {
    return absl::InvalidArgumentError(
        absl::StrCat("P and Q larger than the shard (expected at most ", count, " values, got ",
                     head.p_count() + head.q_count(), ")"));
  }
  return head;
}

std::vector<float> DecodeFactor(const ValueFormat& format, const ValueBody& body) {
  std::vector<float> values(body.count);
  format.Decode(body, 0, 1.0f, values);
  return values;
}

}  // namespace

void LowRankHead::Put(std::byte* out) const {
  out[0] = static_cast<std::byte>(CodecId::kPowerSgd);
  out[1] = static_cast<std::byte>(rank);
  const std::array<uint32_t, 2> numbers = {static_cast<uint32_t>(matrix.columns),
                                           static_cast<uint32_t>(matrix.first_column)};
  std::memcpy(out + 2, numbers.data(), sizeof(numbers));
}

void LowRankFactors::Decode(size_t first, std::span<float> out) const {
  const size_t rows = head.rows(), columns = head.matrix.columns;
  std::ranges::fill(out, 0.0f);
  head.matrix.ForEachRow(first, out.size(), [&](size_t row, size_t column, size_t i, size_t n) {
    for (size_t k = 0; k < head.rank; ++k) {
      kernels::AddScaled(p[k * rows + row], std::span(q).subspan(k * columns + column, n),
                         out.subspan(i, n));
    }
  });
}

absl::StatusOr<LowRankLayout::Factor> LowRankLayout::CheckFactor(const ByteChain& payload,
                                                                 size_t begin, size_t count,
                                                                 FindValueFormat find) {
  if (begin >= payload.size()) {
    return absl::InvalidArgumentError("no values (expected a codec id, got 0 bytes)");
  }
  Factor factor = {.offset = begin + 1, .count = count};
  ASSIGN_OR_RETURN(factor.format, find(payload.At(begin)));
  const ValueBody body = {payload, factor.offset, count};
  ASSIGN_OR_RETURN(const size_t bytes, factor.format->BodyBytes(body));
  factor.end = factor.offset + bytes;
  if (payload.size() < factor.end) {
    return absl::InvalidArgumentError(absl::StrCat("wrong length (expected at least ", factor.end,
                                                   " bytes, got ", payload.size(), ")"));
  }
  RETURN_IF_ERROR(factor.format->Check(body));
  return factor;
}

absl::StatusOr<LowRankLayout> LowRankLayout::Check(const ByteChain& payload, size_t count,
                                                   FindValueFormat find) {
  LowRankLayout layout;
  ASSIGN_OR_RETURN(layout.head_, ReadHead(payload, count));
  ASSIGN_OR_RETURN(layout.p_,
                   CheckFactor(payload, LowRankHead::kBytes, layout.head_.p_count(), find));
  ASSIGN_OR_RETURN(layout.q_, CheckFactor(payload, layout.p_.end, layout.head_.q_count(), find));
  if (payload.size() == layout.q_.end) return layout;
  return absl::InvalidArgumentError(
      absl::StrCat("wrong length (expected ", layout.q_.end, " bytes, got ", payload.size(), ")"));
}

LowRankFactors LowRankLayout::Factors(const ByteChain& payload) const {
  return {.head = head_,
          .p = DecodeFactor(*p_.format, {payload, p_.offset, p_.count}),
          .q = DecodeFactor(*q_.format, {payload, q_.offset, q_.count})};
}

bool LowRankLayout::IsWithin(const ByteChain& payload, float limit) const {
  const LowRankFactors factors = Factors(payload);
  const size_t rows = head_.rows(), columns = head_.matrix.columns;
  std::array<double, kMostLowRank> largest;  // of each column of Q
  for (size_t k = 0; k < head_.rank; ++k) {
    largest[k] =
        double{kernels::LargestMagnitude(std::span(factors.q).subspan(k * columns, columns))};
  }
  for (size_t row = 0; row < rows; ++row) {
    double bound = 0;
    for (size_t k = 0; k < head_.rank; ++k) {
      bound += std::abs(double{factors.p[k * rows + row]}) * largest[k];
    }
    if (!(kRounding * bound <= limit)) return false;  // also if the bound is NaN
  }
  return true;
}

}  // namespace thinwire
