#include "kernels/select/top_k.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/codec/sparse/index_code.h"
#include "common/codec/sparse/sparse_encoders.h"
#include "common/codec/sparse/sparse_payload.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

class TopKCodec final : public Codec {
 public:
  TopKCodec(double density, size_t least, IndexCoder coder, std::unique_ptr<const Codec> values)
      : density_(density), least_(least), coder_(coder), values_(std::move(values)) {}

  CodecId id() const override { return CodecId::kTopK; }
  bool lossless() const override { return density_ == 1.0 && values_->lossless(); }
  size_t MaxPayloadBytes(size_t count) const override {
    return std::min(MaxSparseBytes(count), values_->MaxPayloadBytes(count));
  }

  size_t Encode(std::span<const float> values, const RandomKeys& keys,
                std::span<std::byte> out) const override {
    if (SendsDense(values.size())) return values_->Encode(values, keys, out);
    std::vector<uint32_t> indices(SparseEntryCount(density_, values.size(), least_));
    std::vector<float> entries(indices.size());
    uint32_t threshold = 0;
    kernels::SelectTopK(values, {indices, entries}, threshold);
    const size_t begin = PutHead(indices.size(), out.data());
    const size_t end = begin + values_->Encode(entries, keys, out.subspan(begin));
    return end + EncodeIndices(coder_, indices, values.size(), out.data() + end);
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys& keys, CodecMemory& memory,
                        std::span<std::byte> out) const override {
    if (SendsDense(residual.size())) {
      return values_->EncodeFeedback(gradient, residual, keys, memory, out);
    }
    std::vector<uint32_t> indices(SparseEntryCount(density_, residual.size(), least_));
    std::vector<float> entries(indices.size());
    std::vector<float> errors(indices.size());  // the encoding errors of the sent values
    kernels::AddAndSelectTopK(gradient, residual, {indices, entries}, memory.threshold);
    const size_t begin = PutHead(indices.size(), out.data());
    CodecMemory unused;
    const size_t end =
        begin + values_->EncodeFeedback(entries, errors, keys, unused, out.subspan(begin));
    kernels::Scatter(indices, errors, 1.0f, residual);
    return end + EncodeIndices(coder_, indices, residual.size(), out.data() + end);
  }

 private:
  SparseHead Head(size_t entry_count) const {
    return {.format = kTopKFormat, .entry_count = entry_count, .coder = coder_};
  }

  size_t MaxSparseBytes(size_t count) const {
    const size_t entry_count = SparseEntryCount(density_, count, least_);
    return Head(entry_count).bytes() + values_->MaxPayloadBytes(entry_count) +
           MaxIndexBytes(coder_, entry_count, count);
  }

  bool SendsDense(size_t count) const {
    return MaxSparseBytes(count) >= values_->MaxPayloadBytes(count);
  }

  // Writes the head of a topk payload to OUT and returns the head's length in bytes.
  size_t PutHead(size_t entry_count, std::byte* out) const {
    const SparseHead head = Head(entry_count);
    head.Put(out);
    return head.bytes();
  }

  const double density_;
  const size_t least_;
  const IndexCoder coder_;
  const std::unique_ptr<const Codec> values_;
};

}  // namespace

std::unique_ptr<const Codec> MakeTopKCodec(double density, size_t least, IndexCoder coder,
                                           std::unique_ptr<const Codec> values) {
  return std::make_unique<TopKCodec>(density, least, coder, std::move(values));
}

}  // namespace thinwire
