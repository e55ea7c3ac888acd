#include "common/codec/top_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/dense.h"
#include "common/codec/elias_fano.h"
#include "common/codec/top_k_layout.h"
#include "kernels/sparse.h"
#include "kernels/top_k.h"

namespace thinwire {
namespace {

class TopKCodec final : public Codec {
 public:
  TopKCodec(double density, CodecId values) : density_(density), values_(values) {}

  CodecId id() const override { return CodecId::kTopK; }
  bool lossless() const override { return density_ == 1.0 && values_ == CodecId::kFp32; }
  size_t MaxPayloadBytes(size_t count) const override { return Layout(count).payload_bytes; }

  size_t Encode(std::span<const float> values, const Turn&,
                std::span<std::byte> out) const override {
    const TopKLayout layout = Layout(values.size());
    std::vector<uint32_t> indices(layout.sent_count);
    std::vector<float> sent(layout.sent_count);
    uint32_t collect_from = 0;
    kernels::SelectTopK(values, {indices, sent}, collect_from);
    PutHeadAndIndices(layout, indices, values.size(), out.data());
    EncodeDense(values_, sent, out.data() + layout.values_offset);
    return layout.payload_bytes;
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual, const Turn&,
                        CodecMemory& memory, std::span<std::byte> out) const override {
    const TopKLayout layout = Layout(residual.size());
    std::vector<uint32_t> indices(layout.sent_count);
    std::vector<float> sent(layout.sent_count);
    std::vector<float> lost(layout.sent_count);  // of what is sent: the residual has the rest
    kernels::AddAndSelectTopK(gradient, residual, {indices, sent}, memory.collect_from);
    PutHeadAndIndices(layout, indices, residual.size(), out.data());
    EncodeDenseFeedback(values_, sent, lost, out.data() + layout.values_offset);
    kernels::Scatter(indices, lost, 1.0f, residual);
    return layout.payload_bytes;
  }

 private:
  TopKLayout Layout(size_t count) const {
    const auto rounded = static_cast<size_t>(std::llround(density_ * static_cast<double>(count)));
    return LayOutTopK(values_, std::min(count, std::max<size_t>(rounded, 1)), count);
  }

  static void PutHeadAndIndices(const TopKLayout& layout, std::span<const uint32_t> indices,
                                size_t count, std::byte* out) {
    PutTopKHead(layout, out);
    EncodeEliasFano(indices, count, out + layout.indices_offset);
  }

  const double density_;
  const CodecId values_;
};

// The parts of a payload that CheckTopK passed, the indices in one span.
class TopKReader {
 public:
  TopKReader(const ByteChain& payload, size_t count)
      : layout_(ReadTopKLayout(payload, count).value()),
        count_(count),
        indices_(
            payload.Sub(layout_.indices_offset, layout_.values_offset - layout_.indices_offset)),
        code_(indices_.Contiguous(scratch_)),
        values_{layout_.values, payload, layout_.values_offset} {}
  TopKReader(const TopKReader&) = delete;
  TopKReader& operator=(const TopKReader&) = delete;

  absl::Status Check() const {
    const absl::Status status = CheckEliasFano(code_, layout_.sent_count, count_);
    return status.ok() ? CheckDense(values_) : status;
  }

  bool IsWithin(float limit) const { return DenseIsWithin(values_, layout_.sent_count, limit); }

  // Calls block(indices, values) for a few of those sent at a time, so that nothing is allocated.
  template <typename Block>
  void ForEachBlock(const Block& block) const {
    constexpr size_t kBlockValues = 2048;  // with their indices 16 KiB: in the first cache
    std::array<uint32_t, kBlockValues> indices;
    std::array<float, kBlockValues> values;
    EliasFanoReader reader(code_, layout_.sent_count, count_);
    for (size_t first = 0; first < layout_.sent_count; first += kBlockValues) {
      const size_t n = std::min(kBlockValues, layout_.sent_count - first);
      reader.Next(std::span(indices).first(n));
      DecodeDense(values_, first, 1.0f, std::span(values).first(n));
      block(std::span<const uint32_t>(indices).first(n), std::span<const float>(values).first(n));
    }
  }

 private:
  const TopKLayout layout_;
  const size_t count_;
  const ByteChain indices_;
  std::vector<std::byte> scratch_;
  const std::span<const std::byte> code_;
  const DenseValues values_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeTopKCodec(double density, CodecId values) {
  if (!(density > 0 && density <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk density: want above 0 and at most 1, got ", density));
  }
  if (!IsDense(values)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk values: want a dense codec, got ", std::string(CodecName(values))));
  }
  return std::make_unique<TopKCodec>(density, values);
}

absl::Status CheckTopK(const ByteChain& payload, size_t count) {
  const absl::StatusOr<TopKLayout> layout = ReadTopKLayout(payload, count);
  if (!layout.ok()) return layout.status();
  return TopKReader(payload, count).Check();
}

bool TopKIsWithin(const ByteChain& payload, size_t count, float limit) {
  return TopKReader(payload, count).IsWithin(limit);
}

void DecodeTopK(const ByteChain& payload, float scale, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  TopKReader(payload, out.size()).ForEachBlock([&](auto indices, auto values) {
    kernels::Scatter(indices, values, scale, out);
  });
}

void DecodeTopKInBlocks(const ByteChain& payload, float scale, size_t count, BlockFunction block) {
  std::array<float, kDecodedBlock> values;
  values.fill(0.0f);
  size_t first = 0;
  const auto finish_block = [&] {
    const size_t n = std::min(values.size(), count - first);
    block(first, std::span<const float>(values).first(n));
    values.fill(0.0f);
    first += n;
  };
  TopKReader(payload, count).ForEachBlock([&](auto indices, auto sent) {
    for (size_t j = 0; j < indices.size(); ++j) {
      while (indices[j] - first >= values.size()) finish_block();
      values[indices[j] - first] = scale * sent[j];
    }
  });
  while (first < count) finish_block();
}

void ForEachSentOfTopK(const ByteChain& payload, size_t count, SentFunction block) {
  TopKReader(payload, count).ForEachBlock(block);
}

void DecodeTopKAdd(const ByteChain& payload, float scale, std::span<float> sum) {
  TopKReader(payload, sum.size()).ForEachBlock([&](auto indices, auto values) {
    kernels::ScatterAdd(indices, values, scale, sum);
  });
}

}  // namespace thinwire
