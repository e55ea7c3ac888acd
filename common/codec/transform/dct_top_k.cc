#include "common/codec/transform/dct_top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/codec/sparse/index_code.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/memory/byte_chain.h"
#include "kernels/arithmetic.h"
#include "kernels/dct.h"
#include "kernels/reductions.h"
#include "kernels/row_products.h"

namespace thinwire {
namespace {

using kernels::kDctChunk;

constexpr float kLargestTransformed = 0x1p120f;

// Coefficients with their indices in the shard, ascending.
struct Entries {
  std::vector<uint32_t> indices;
  std::vector<float> values;
};

// Appends the K largest of the coefficients CHUNK, which begin at index FIRST of the shard. Takes
// one pass per coefficient, because K is usually small.
void AppendLargest(std::span<const float> chunk, size_t k, size_t first, Entries& entries) {
  std::array<uint32_t, kDctChunk> keys = {};  // magnitude + 1; 0: chosen, or beyond the chunk
  for (size_t i = 0; i < chunk.size(); ++i) {
    keys[i] = (std::bit_cast<uint32_t>(chunk[i]) & 0x7FFFFFFF) + 1;
  }
  std::bitset<kDctChunk> chosen;
  for (size_t j = 0; j < k; ++j) {
    uint32_t largest = 0;
    for (const uint32_t key : keys) largest = std::max(largest, key);
    const auto found = static_cast<size_t>(std::ranges::find(keys, largest) - keys.begin());
    chosen.set(found);
    keys[found] = 0;
  }
  for (size_t i = 0; i < chunk.size(); ++i) {
    if (!chosen[i]) continue;
    entries.indices.push_back(static_cast<uint32_t>(first + i));
    entries.values.push_back(chunk[i]);
  }
}

class DctTopKCodec final : public Codec {
 public:
  DctTopKCodec(double density, IndexCoder coder, std::unique_ptr<const Codec> values,
               const ValueFormat& format)
      : density_(density), coder_(coder), values_(std::move(values)), format_(format) {}

  CodecId id() const override { return CodecId::kDctTopK; }
  bool lossless() const override { return false; }
  size_t MaxPayloadBytes(size_t count) const override { return values_->MaxPayloadBytes(count); }

  size_t Encode(std::span<const float> values, const RandomKeys& keys,
                std::span<std::byte> out) const override {
    std::vector<float> residual(values.size());
    CodecMemory unused;
    return EncodeFeedback(values, residual, keys, unused, out);
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys& keys, CodecMemory& memory,
                        std::span<std::byte> out) const override {
    const size_t count = residual.size();
    // The negation is true for a NaN, too.
    if (MaxSparseBytes(count) >= values_->MaxPayloadBytes(count) ||
        !(kernels::LargestMagnitudeOfSum(gradient, residual) <= kLargestTransformed)) {
      return values_->EncodeFeedback(gradient, residual, keys, memory, out);
    }
    kernels::Add(gradient, residual);
    Entries entries = LargestCoefficients(residual);
    const SparseHead head = HeadOf(entries.indices.size());
    head.Put(out.data());
    const size_t begin = head.bytes();
    const size_t end = begin + values_->Encode(entries.values, keys, out.subspan(begin));
    const ByteChain payload(out.subspan(begin, end - begin), nullptr);
    format_.Decode({payload, 1, entries.values.size()}, 0, 1.0f, entries.values);
    Subtract(entries, residual);
    return end + EncodeIndices(coder_, entries.indices, count, out.data() + end);
  }

 private:
  SparseHead HeadOf(size_t entry_count) const {
    return {.format = kDctTopKFormat, .entry_count = entry_count, .coder = coder_};
  }

  size_t MaxSparseBytes(size_t count) const {
    const size_t entry_count = DctEntryCount(density_, count);
    return HeadOf(entry_count).bytes() + values_->MaxPayloadBytes(entry_count) +
           MaxIndexBytes(coder_, entry_count, count);
  }

  Entries LargestCoefficients(std::span<const float> values) const {
    Entries entries;
    entries.indices.reserve(DctEntryCount(density_, values.size()));
    entries.values.reserve(entries.indices.capacity());
    for (size_t first = 0; first < values.size(); first += kDctChunk) {
      std::array<float, kDctChunk> room;
      std::span<const float> chunk =
          values.subspan(first, std::min(kDctChunk, values.size() - first));
      if (chunk.size() == kDctChunk) {
        kernels::Dct(chunk, room);
        chunk = room;
      }
      AppendLargest(chunk, SparseEntryCount(density_, chunk.size()), first, entries);
    }
    return entries;
  }

  // Subtracts the values that ENTRIES stand for from RESIDUAL. Every chunk has an entry.
  static void Subtract(const Entries& entries, std::span<float> residual) {
    size_t j = 0;
    for (size_t first = 0; first < residual.size(); first += kDctChunk) {
      std::array<float, kDctChunk> room = {};
      const auto part = residual.subspan(first, std::min(kDctChunk, residual.size() - first));
      for (; j < entries.indices.size() && entries.indices[j] < first + part.size(); ++j) {
        room[entries.indices[j] - first] = entries.values[j];
      }
      const auto chunk = std::span(room).first(part.size());
      InverseTransform(chunk);
      kernels::AddScaled(-1.0f, chunk, part);
    }
  }

  const double density_;
  const IndexCoder coder_;
  const std::unique_ptr<const Codec> values_;
  const ValueFormat& format_;
};

}  // namespace

size_t DctEntryCount(double density, size_t count) {
  const size_t rest = count % kDctChunk;
  return count / kDctChunk * SparseEntryCount(density, kDctChunk) +
         (rest == 0 ? 0 : SparseEntryCount(density, rest));
}

void InverseTransform(std::span<float> coefficients) {
  const auto chunks = coefficients.first(coefficients.size() - coefficients.size() % kDctChunk);
  kernels::InverseDct(chunks, chunks);
}

std::unique_ptr<const Codec> MakeDctTopKCodec(double density, IndexCoder coder,
                                              std::unique_ptr<const Codec> values,
                                              const ValueFormat& format) {
  return std::make_unique<DctTopKCodec>(density, coder, std::move(values), format);
}

}  // namespace thinwire
