#include "common/codec/low_rank/power_sgd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "common/codec/low_rank/low_rank_payload.h"
#include "common/memory/byte_chain.h"
#include "kernels/arithmetic.h"
#include "kernels/mix_bits.h"
#include "kernels/reductions.h"
#include "kernels/row_products.h"

namespace thinwire {
namespace {

// A column of P that loses all but this part of its length when it is made orthogonal to the
// columns before it contains only rounding errors.
constexpr double kDependent = 1e-5;
// The powers of two from 2^-126 to 2^126 and their reciprocals are normal floats.
constexpr int kLargestExponent = 126;

MatrixRun NearlySquare(size_t count) {
  size_t columns = 1;
  while (columns * columns < count) ++columns;
  return {.columns = columns};
}

// Returns uniformly distributed numbers from -1 to 1 for column K of Q.
void DrawColumn(size_t k, std::span<float> column) {
  for (size_t j = 0; j < column.size(); ++j) {
    const uint64_t bits = kernels::MixBits(k * column.size() + j);
    column[j] = static_cast<float>(static_cast<int32_t>(bits >> 32)) * 0x1p-31f;
  }
}

// Returns the reciprocal of a power of two that is close to LARGEST. The products of the values
// with the result neither overflow nor vanish.
float ReciprocalUnit(float largest) {
  if (!(largest > 0) || std::isinf(largest)) return 1;
  return std::ldexp(1.0f, -std::clamp(std::ilogb(largest), -kLargestExponent, kLargestExponent));
}

double Length(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// Makes the columns of P orthogonal and of length 1 (Gram and Schmidt). A column that depends on
// the columns before it becomes zero. Computes in double and in the order of the rows.
void Orthonormalize(size_t rows, std::span<float> p) {
  std::vector<double> column(rows);
  for (size_t begin = 0; begin < p.size(); begin += rows) {
    const std::span<float> out = p.subspan(begin, rows);
    std::ranges::copy(out, column.begin());
    const double before = Length(column);
    for (size_t other = 0; other < begin; other += rows) {
      double product = 0;
      for (size_t i = 0; i < rows; ++i) product += column[i] * double{p[other + i]};
      for (size_t i = 0; i < rows; ++i) column[i] -= product * double{p[other + i]};
    }
    const double after = Length(column);
    const bool independent = after > kDependent * before;
    for (size_t i = 0; i < rows; ++i) {
      out[i] = independent ? static_cast<float>(column[i] / after) : 0;
    }
  }
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
    std::vector<float> residual(values.size());
    CodecMemory memory;
    return EncodeFeedback(values, residual, keys, memory, out);
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys& keys, CodecMemory& memory,
                        std::span<std::byte> out) const override {
    const size_t count = gradient.size();
    const MatrixRun matrix = memory.matrix.columns > 0 ? memory.matrix : NearlySquare(count);
    const LowRankHead head = {.rank = rank_, .matrix = matrix, .count = count};
    if (!IsShort(head)) return values_->EncodeFeedback(gradient, residual, keys, memory, out);
    kernels::Add(gradient, residual);
    LowRankFactors factors = Iterate(residual, head, memory.warm_start);
    head.Put(out.data());
    size_t length = LowRankHead::kBytes;
    length += EncodeFactor(factors.p, keys, out.subspan(length));
    length += EncodeFactor(factors.q, keys, out.subspan(length));
    Subtract(factors, residual);
    return length;
  }

 private:
  // Returns whether a payload with P and Q is shorter than half of a dense payload.
  bool IsShort(const LowRankHead& head) const {
    if (head.p_count() + head.q_count() > head.count) return false;
    const size_t bytes = LowRankHead::kBytes + values_->MaxPayloadBytes(head.p_count()) +
                         values_->MaxPayloadBytes(head.q_count());
    return 2 * bytes < values_->MaxPayloadBytes(head.count);
  }

  // Does one step of the power iteration for the matrix of VALUES, which begins with WARM_START,
  // and sets WARM_START to the new Q, scaled.
  static LowRankFactors Iterate(std::span<const float> values, const LowRankHead& head,
                                std::vector<float>& warm_start);
  // Sets Q to the product of the transposed matrix and P.
  static void MultiplyTransposed(std::span<const float> values, LowRankFactors& factors);
  // Scales each column of Q by a power of two to magnitudes up to 2. Draws a column that is zero or
  // not finite.
  static void ScaleColumns(size_t columns, std::span<float> q);

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
    ScaleColumns(columns, warm_start);
  }
  LowRankFactors factors = {
      .head = head, .p = std::vector<float>(head.p_count()), .q = std::move(warm_start)};
  const float reciprocal = ReciprocalUnit(kernels::LargestMagnitude(values));
  for (float& value : factors.q) value *= reciprocal;
  head.matrix.ForEachRow(0, values.size(), [&](size_t row, size_t column, size_t i, size_t n) {
    for (size_t k = 0; k < head.rank; ++k) {
      factors.p[k * rows + row] =
          kernels::Dot(values.subspan(i, n), std::span(factors.q).subspan(k * columns + column, n));
    }
  });
  Orthonormalize(rows, factors.p);
  MultiplyTransposed(values, factors);
  warm_start = factors.q;
  ScaleColumns(columns, warm_start);
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
  // The products of P and Q of huge values must not overflow.
  const float limit = std::numeric_limits<float>::max() / (2 * static_cast<float>(head.rank));
  for (float& value : factors.q) value = std::clamp(value, -limit, limit);
}

void PowerSgdCodec::ScaleColumns(size_t columns, std::span<float> q) {
  for (size_t k = 0; k * columns < q.size(); ++k) {
    const std::span<float> column = q.subspan(k * columns, columns);
    const float largest = kernels::LargestMagnitude(column);
    if (!(largest > 0) || std::isinf(largest)) {
      DrawColumn(k, column);
      continue;
    }
    const double factor = std::ldexp(1.0, -std::ilogb(largest));
    for (float& value : column) value = static_cast<float>(double{value} * factor);
  }
}

}  // namespace

std::unique_ptr<const Codec> MakePowerSgdCodec(size_t rank, std::unique_ptr<const Codec> values,
                                               const ValueFormat& format) {
  return std::make_unique<PowerSgdCodec>(rank, std::move(values), format);
}

}  // namespace thinwire
