#include "common/codec/low_rank/power_sgd.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "common/memory/byte_chain.h"
#include "kernels/arithmetic.h"
#include "kernels/normalize_columns.h"
#include "kernels/reductions.h"
#include "kernels/row_products.h"

namespace thinwire {
namespace {

MatrixRun NearlySquare(size_t count) {
  size_t columns = 1;
  while (columns * columns < count) ++columns;
  return {.columns = columns};
}

class PowerSgdCodec final : public Codec {
 public:
  PowerSgdCodec(size_t rank, std::unique_ptr<const Codec> values, const ValueFormat& format)
      : rank_(rank), values_(std::move(values)), format_(format) {}

  CodecId id() const override { return CodecId::kPowerSgd; }
  bool lossless() const override { return false; }
  bool needs_memory() const override { return true; }
  size_t MaxPayloadBytes(size_t count) const override { return values_->MaxPayloadBytes(count); }

  size_t Encode(std::span<const float> values, const RandomKeys& keys,
                std::span<std::byte> out) const override {
    CodecMemory memory;
    if (!HeadOf(memory, values.size()).has_value()) return values_->Encode(values, keys, out);
    std::vector<float> residual(values.size());
    return EncodeFeedback(values, residual, keys, memory, out);
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys& keys, CodecMemory& memory,
                        std::span<std::byte> out) const override {
    const std::optional<LowRankHead> head = HeadOf(memory, gradient.size());
    if (!head.has_value()) return values_->EncodeFeedback(gradient, residual, keys, memory, out);
    kernels::Add(gradient, residual);
    LowRankFactors factors = Iterate(residual, *head, memory.warm_start);
    head->Put(out.data());
    size_t length = LowRankHead::kBytes;
    length += EncodeFactor(factors.p, keys, out.subspan(length));
    length += EncodeFactor(factors.q, keys, out.subspan(length));
    Subtract(factors, residual);
    return length;
  }

 private:
  std::optional<LowRankHead> HeadOf(const CodecMemory& memory, size_t count) const {
    return PowerSgdHead(rank_, memory.matrix, count,
                        [this](size_t values) { return values_->MaxPayloadBytes(values); });
  }

  // Does one step of the power iteration for the matrix of VALUES, which begins with WARM_START,
  // and sets WARM_START to the new Q, scaled.
  static LowRankFactors Iterate(std::span<const float> values, const LowRankHead& head,
                                std::vector<float>& warm_start);
  // Sets Q to the product of the transposed matrix and P.
  static void MultiplyTransposed(std::span<const float> values, LowRankFactors& factors);

  // Writes the payload of FACTOR, P or Q, to OUT and returns its length. Replaces FACTOR by the
  // decoded payload.
  size_t EncodeFactor(std::span<float> factor, const RandomKeys& keys,
                      std::span<std::byte> out) const {
    const size_t length = values_->Encode(factor, keys, out);
    const ByteChain payload(out.first(length), nullptr);
    format_.Decode({payload, 1, factor.size()}, 0, 1.0f, factor);
    return length;
  }

  // Subtracts the decoded values from RESIDUAL.
  static void Subtract(const LowRankFactors& factors, std::span<float> residual) {
    std::array<float, 2048> room;
    for (size_t first = 0; first < residual.size(); first += room.size()) {
      const auto part = residual.subspan(first, std::min(room.size(), residual.size() - first));
      const auto decoded = std::span(room).first(part.size());
      factors.Decode(first, decoded);
      kernels::AddScaled(-1.0f, decoded, part);
    }
  }

  const size_t rank_;
  const std::unique_ptr<const Codec> values_;
  const ValueFormat& format_;
};

LowRankFactors PowerSgdCodec::Iterate(std::span<const float> values, const LowRankHead& head,
                                      std::vector<float>& warm_start) {
  const size_t columns = head.matrix.columns, rows = head.rows();
  if (warm_start.size() != head.q_count()) {
    warm_start.assign(head.q_count(), 0.0f);
    kernels::ScaleColumns(columns, warm_start);
  }
  LowRankFactors factors = {
      .head = head, .p = std::vector<float>(head.p_count()), .q = std::move(warm_start)};
  const float reciprocal = kernels::ReciprocalUnit(kernels::LargestMagnitude(values));
  for (float& value : factors.q) value *= reciprocal;
  head.matrix.ForEachRow(0, values.size(), [&](size_t row, size_t column, size_t i, size_t n) {
    for (size_t k = 0; k < head.rank; ++k) {
      factors.p[k * rows + row] =
          kernels::Dot(values.subspan(i, n), std::span(factors.q).subspan(k * columns + column, n));
    }
  });
  kernels::Orthonormalize(rows, factors.p);
  MultiplyTransposed(values, factors);
  warm_start = factors.q;
  kernels::ScaleColumns(columns, warm_start);
  return factors;
}

void PowerSgdCodec::MultiplyTransposed(std::span<const float> values, LowRankFactors& factors) {
  const LowRankHead& head = factors.head;
  const size_t columns = head.matrix.columns, rows = head.rows();
  std::ranges::fill(factors.q, 0.0f);
  head.matrix.ForEachRow(0, values.size(), [&](size_t row, size_t column, size_t i, size_t n) {
    for (size_t k = 0; k < head.rank; ++k) {
      kernels::AddScaled(factors.p[k * rows + row], values.subspan(i, n),
                         std::span(factors.q).subspan(k * columns + column, n));
    }
  });
  const float limit = LargestInQ(head.rank);
  for (float& value : factors.q) value = std::clamp(value, -limit, limit);
}

}  // namespace

std::optional<LowRankHead> PowerSgdHead(size_t rank, const MatrixRun& matrix, size_t count,
                                        absl::FunctionRef<size_t(size_t count)> dense_bytes) {
  const LowRankHead head = {
      .rank = rank, .matrix = matrix.columns > 0 ? matrix : NearlySquare(count), .count = count};
  if (head.p_count() + head.q_count() > count) return std::nullopt;
  const size_t bytes =
      LowRankHead::kBytes + dense_bytes(head.p_count()) + dense_bytes(head.q_count());
  if (2 * bytes >= dense_bytes(count)) return std::nullopt;
  return head;
}

std::unique_ptr<const Codec> MakePowerSgdCodec(size_t rank, std::unique_ptr<const Codec> values,
                                               const ValueFormat& format) {
  return std::make_unique<PowerSgdCodec>(rank, std::move(values), format);
}

}  // namespace thinwire
