#include <cstdint>
#include <utility>
#include <vector>

#include "common/codec/sparse/drawn_indices.h"
#include "common/codec/sparse/sparse_encoders.h"
#include "common/codec/sparse/sparse_payload.h"
#include "kernels/arithmetic.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

class RandomKCodec final : public Codec {
 public:
  RandomKCodec(double density, bool unbiased, std::unique_ptr<const Codec> values)
      : density_(density), unbiased_(unbiased), values_(std::move(values)) {}

  CodecId id() const override { return CodecId::kRandomK; }
  bool lossless() const override { return density_ == 1.0 && values_->lossless(); }
  size_t MaxPayloadBytes(size_t count) const override {
    const SparseHead head = Head(count, 0);
    return head.bytes() + values_->MaxPayloadBytes(head.entry_count);
  }

  size_t Encode(std::span<const float> values, const RandomKeys& keys,
                std::span<std::byte> out) const override {
    const SparseHead head = Head(values.size(), keys.shared);
    std::vector<float> entries(head.entry_count);
    kernels::Gather(values, Indices(head, values.size()), entries);
    if (unbiased_) {
      const auto factor = static_cast<float>(values.size()) / static_cast<float>(head.entry_count);
      for (float& value : entries) value *= factor;
    }
    head.Put(out.data());
    const size_t begin = head.bytes();
    return begin + values_->Encode(entries, keys, out.subspan(begin));
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys& keys, CodecMemory&,
                        std::span<std::byte> out) const override {
    const SparseHead head = Head(residual.size(), keys.shared);
    const std::vector<uint32_t> indices = Indices(head, residual.size());
    kernels::Add(gradient, residual);
    std::vector<float> entries(head.entry_count), errors(head.entry_count);
    kernels::Gather(residual, indices, entries);
    head.Put(out.data());
    const size_t begin = head.bytes();
    CodecMemory unused;
    const size_t bytes = values_->EncodeFeedback(entries, errors, keys, unused, out.subspan(begin));
    kernels::Scatter(indices, errors, 1.0f, residual);
    return begin + bytes;
  }

 private:
  SparseHead Head(size_t count, uint64_t draw) const {
    return {
        .format = kRandomKFormat, .entry_count = SparseEntryCount(density_, count), .draw = draw};
  }

  static std::vector<uint32_t> Indices(const SparseHead& head, size_t count) {
    std::vector<uint32_t> indices(head.entry_count);
    DrawnIndices(head.draw, head.entry_count, count).Next(indices);
    return indices;
  }

  const double density_;
  const bool unbiased_;
  const std::unique_ptr<const Codec> values_;
};

}  // namespace

std::unique_ptr<const Codec> MakeRandomKCodec(double density, bool unbiased,
                                              std::unique_ptr<const Codec> values) {
  return std::make_unique<RandomKCodec>(density, unbiased, std::move(values));
}

}  // namespace thinwire
