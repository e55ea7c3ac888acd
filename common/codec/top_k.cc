#include "common/codec/top_k.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/index_code.h"
#include "common/codec/sparse_head.h"
#include "kernels/sparse.h"
#include "kernels/top_k.h"

namespace thinwire {
namespace {

class TopKCodec final : public Codec {
 public:
  TopKCodec(double density, size_t least, IndexCoder coder, std::unique_ptr<const Codec> values)
      : density_(density), least_(least), coder_(coder), values_(std::move(values)) {}

  CodecId id() const override { return CodecId::kTopK; }
  bool lossless() const override { return density_ == 1.0 && values_->lossless(); }
  size_t MaxPayloadBytes(size_t count) const override {
    return std::min(SparseBytes(count), values_->MaxPayloadBytes(count));
  }

  size_t Encode(std::span<const float> values, const Turn& turn,
                std::span<std::byte> out) const override {
    if (SendsDense(values.size())) return values_->Encode(values, turn, out);
    std::vector<uint32_t> indices(SentCount(density_, values.size(), least_));
    std::vector<float> sent(indices.size());
    uint32_t collect_from = 0;
    kernels::SelectTopK(values, {indices, sent}, collect_from);
    const size_t begin = PutHead(indices.size(), out.data());
    const size_t end = begin + values_->Encode(sent, turn, out.subspan(begin));
    return end + EncodeIndices(coder_, indices, values.size(), out.data() + end);
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const Turn& turn, CodecMemory& memory,
                        std::span<std::byte> out) const override {
    if (SendsDense(residual.size())) {
      return values_->EncodeFeedback(gradient, residual, turn, memory, out);
    }
    std::vector<uint32_t> indices(SentCount(density_, residual.size(), least_));
    std::vector<float> sent(indices.size());
    std::vector<float> lost(indices.size());  // of what is sent: the residual has the rest
    kernels::AddAndSelectTopK(gradient, residual, {indices, sent}, memory.collect_from);
    const size_t begin = PutHead(indices.size(), out.data());
    CodecMemory none;
    const size_t end = begin + values_->EncodeFeedback(sent, lost, turn, none, out.subspan(begin));
    kernels::Scatter(indices, lost, 1.0f, residual);
    return end + EncodeIndices(coder_, indices, residual.size(), out.data() + end);
  }

 private:
  SparseHead Head(size_t sent_count) const {
    return {.id = CodecId::kTopK, .sent_count = sent_count, .coder = coder_};
  }

  // At most.
  size_t SparseBytes(size_t count) const {
    const size_t sent_count = SentCount(density_, count, least_);
    return SparseHeadBytes(Head(sent_count)) + values_->MaxPayloadBytes(sent_count) +
           MaxIndexBytes(coder_, sent_count, count);
  }

  bool SendsDense(size_t count) const {
    return SparseBytes(count) >= values_->MaxPayloadBytes(count);
  }

  size_t PutHead(size_t sent_count, std::byte* out) const {
    PutSparseHead(Head(sent_count), out);
    return SparseHeadBytes(Head(sent_count));
  }

  const double density_;
  const size_t least_;
  const IndexCoder coder_;
  const std::unique_ptr<const Codec> values_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeTopKCodec(double density, size_t least,
                                                           IndexCoder coder,
                                                           std::unique_ptr<const Codec> values) {
  if (!(density > 0 && density <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk density: want above 0 and at most 1, got ", density));
  }
  if (least < 1) return absl::InvalidArgumentError("topk least_sent: want at least 1, got 0");
  return std::make_unique<TopKCodec>(density, least, coder, std::move(values));
}

}  // namespace thinwire
