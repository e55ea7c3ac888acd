#include "server/core/staleness/dcasgd.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/codec/sparse/index_code.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/memory/byte_chain.h"

namespace thinwire {
namespace {

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

CheckedPayload Compensated(const CheckedPayload& gradient, std::span<const float> now,
                           std::span<const float> then, double lambda, float largest) {
  // Computes in double, in which no product of floats overflows.
  const auto compensate = [&](double g, size_t i) {
    const double value = g + lambda * g * g * (double{now[i]} - then[i]);
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
