#include "server/core/staleness/dcasgd.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/codec/sparse/index_code.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/memory/array_bytes.h"
#include "common/memory/byte_chain.h"

namespace thinwire {
namespace {

// The epsilon of all experiments in the paper.
constexpr double kEpsilon = 1e-7;

ByteChain Fp32Of(std::vector<float> values) {
  const auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  return LendFp32(*owner, owner);
}

// Returns a topk payload of an array of COUNT values: the entries at INDICES have the values
// VALUES.
ByteChain TopKOf(std::span<const uint32_t> indices, std::vector<float> values, size_t count) {
  constexpr IndexCoder kCoder = IndexCoder::kEliasFano;
  const SparseHead head = {.format = kTopKFormat, .entry_count = indices.size(), .coder = kCoder};
  std::vector<std::byte> head_bytes(head.bytes());
  head.Put(head_bytes.data());
  std::vector<std::byte> index_bytes(MaxIndexBytes(kCoder, indices.size(), count));
  EncodeIndices(kCoder, indices, count, index_bytes.data());
  ByteChain payload(std::move(head_bytes));
  payload.Append(Fp32Of(std::move(values)));
  payload.Append(ByteChain(std::move(index_bytes)));
  return payload;
}

}  // namespace

MeanSquares::MeanSquares(size_t value_count, double decay, std::pmr::memory_resource* memory)
    : decay_(decay), values_(memory) {
  if (decay > 0) values_.resize(value_count);
}

void MeanSquares::Add(const CheckedPayload& gradient) {
  if (values_.empty()) return;
  const auto add = [this](size_t i, double g) {
    const double mean = decay_ * values_[i] + (1 - decay_) * g * g;
    values_[i] = static_cast<float>(std::min<double>(mean, std::numeric_limits<float>::max()));
  };
  if (PayloadIsSparse(gradient)) {
    ForEachPayloadEntry(gradient,
                        [&](std::span<const uint32_t> at, std::span<const float> entries) {
                          for (size_t j = 0; j < at.size(); ++j) add(at[j], entries[j]);
                        });
    return;
  }
  DecodePayloadInBlocks(gradient, 1, [&](size_t first, std::span<const float> block) {
    for (size_t j = 0; j < block.size(); ++j) add(first + j, block[j]);
  });
}

double MeanSquares::FactorOf(size_t i) const {
  return values_.empty() ? 1 : 1 / std::sqrt(values_[i] + kEpsilon);
}

ByteChain MeanSquares::Save() const { return CopyArray(std::as_bytes(std::span(values_))); }

absl::Status MeanSquares::Restore(const ByteChain& snapshot) {
  return FillArray("mean_squares", snapshot, std::as_writable_bytes(std::span(values_)));
}

CheckedPayload Compensated(const CheckedPayload& gradient, std::span<const float> now,
                           std::span<const float> then, double lambda, const MeanSquares& squares,
                           float largest) {
  // Computes in double, in which no product of floats overflows.
  const auto compensate = [&](double g, size_t i) {
    const double value = g + lambda * squares.FactorOf(i) * g * g * (double{now[i]} - then[i]);
    return static_cast<float>(std::clamp<double>(value, -largest, largest));
  };
  std::vector<float> values;
  if (PayloadIsSparse(gradient)) {
    std::vector<uint32_t> indices;
    ForEachPayloadEntry(gradient,
                        [&](std::span<const uint32_t> at, std::span<const float> entries) {
                          for (size_t j = 0; j < at.size(); ++j) {
                            indices.push_back(at[j]);
                            values.push_back(compensate(entries[j], at[j]));
                          }
                        });
    return EncodedPayload(TopKOf(indices, std::move(values), gradient.count()), gradient.count());
  }
  values.resize(gradient.count());
  DecodePayloadInBlocks(gradient, 1, [&](size_t first, std::span<const float> block) {
    for (size_t j = 0; j < block.size(); ++j) values[first + j] = compensate(block[j], first + j);
  });
  return EncodedPayload(Fp32Of(std::move(values)), gradient.count());
}

}  // namespace thinwire
