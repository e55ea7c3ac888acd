#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/drawn_indices.h"
#include "common/codec/sparse_head.h"
#include "common/codec/top_k.h"
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
    return SparseHeadBytes(head) + values_->MaxPayloadBytes(head.sent_count);
  }

  size_t Encode(std::span<const float> values, const Turn& turn,
                std::span<std::byte> out) const override {
    const SparseHead head = Head(values.size(), turn.shared_draw);
    std::vector<float> sent(head.sent_count);
    kernels::Gather(values, Indices(head, values.size()), sent);
    if (unbiased_) {
      const auto factor = static_cast<float>(values.size()) / static_cast<float>(head.sent_count);
      for (float& value : sent) value *= factor;
    }
    PutSparseHead(head, out.data());
    const size_t begin = SparseHeadBytes(head);
    return begin + values_->Encode(sent, turn, out.subspan(begin));
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const Turn& turn, CodecMemory&, std::span<std::byte> out) const override {
    const SparseHead head = Head(residual.size(), turn.shared_draw);
    const std::vector<uint32_t> indices = Indices(head, residual.size());
    kernels::Add(gradient, residual);
    std::vector<float> sent(head.sent_count), lost(head.sent_count);
    kernels::Gather(residual, indices, sent);
    PutSparseHead(head, out.data());
    const size_t begin = SparseHeadBytes(head);
    CodecMemory none;
    const size_t bytes = values_->EncodeFeedback(sent, lost, turn, none, out.subspan(begin));
    kernels::Scatter(indices, lost, 1.0f, residual);
    return begin + bytes;
  }

 private:
  SparseHead Head(size_t count, uint64_t draw) const {
    return {.id = CodecId::kRandomK, .sent_count = SentCount(density_, count), .draw = draw};
  }

  static std::vector<uint32_t> Indices(const SparseHead& head, size_t count) {
    std::vector<uint32_t> indices(head.sent_count);
    DrawnIndices(head.draw, head.sent_count, count).Next(indices);
    return indices;
  }

  const double density_;
  const bool unbiased_;
  const std::unique_ptr<const Codec> values_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeRandomKCodec(double density, bool unbiased,
                                                              std::unique_ptr<const Codec> values) {
  if (!(density > 0 && density <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("randomk density: want above 0 and at most 1, got ", density));
  }
  return std::make_unique<RandomKCodec>(density, unbiased, std::move(values));
}

}  // namespace thinwire
