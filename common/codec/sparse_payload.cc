#include "common/codec/sparse_payload.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/dense_payload.h"
#include "common/codec/drawn_indices.h"
#include "common/codec/index_code.h"
#include "common/codec/sparse_head.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

// The parts of a payload whose head and lengths are right, the indices in one span.
class SparseReader {
 public:
  SparseReader(const ByteChain& payload, size_t count)
      : head_(ReadSparseHead(payload, count).value()),
        count_(count),
        values_{payload, SparseHeadBytes(head_), head_.sent_count},
        indices_(Rest(payload, values_)),
        code_(indices_.Contiguous(scratch_)) {}
  SparseReader(const SparseReader&) = delete;
  SparseReader& operator=(const SparseReader&) = delete;

  absl::Status Check() const {
    if (head_.id == CodecId::kTopK) {
      const absl::Status status = CheckIndices(head_.coder, code_, head_.sent_count, count_);
      if (!status.ok()) return status;
    }
    return CheckDensePayload(values_);
  }

  bool IsWithin(float limit) const { return DensePayloadIsWithin(values_, limit); }

  // Calls block(indices, values) for a few of those sent at a time, so that nothing is allocated.
  template <typename Block>
  void ForEachBlock(const Block& block) const {
    if (head_.id == CodecId::kRandomK) {
      return ForEachBlockOf(DrawnIndices(head_.draw, head_.sent_count, count_), block);
    }
    ForEachBlockOf(IndexReader(head_.coder, code_, head_.sent_count, count_), block);
  }

 private:
  static ByteChain Rest(const ByteChain& payload, const DensePayload& values) {
    const size_t begin = values.offset + DensePayloadBytes(values).value();
    return payload.Sub(begin, payload.size() - begin);
  }

  template <typename Reader, typename Block>
  void ForEachBlockOf(Reader reader, const Block& block) const {
    constexpr size_t kBlockValues = 2048;  // with their indices 16 KiB: in the first cache
    std::array<uint32_t, kBlockValues> indices;
    std::array<float, kBlockValues> values;
    for (size_t first = 0; first < head_.sent_count; first += kBlockValues) {
      const size_t n = std::min(kBlockValues, head_.sent_count - first);
      reader.Next(std::span(indices).first(n));
      DecodeDensePayload(values_, first, 1.0f, std::span(values).first(n));
      block(std::span<const uint32_t>(indices).first(n), std::span<const float>(values).first(n));
    }
  }

  const SparseHead head_;
  const size_t count_;
  const DensePayload values_;
  const ByteChain indices_;
  std::vector<std::byte> scratch_;
  const std::span<const std::byte> code_;
};

absl::Status WithCodec(CodecId id, size_t count, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(CodecName(id)), " payload of ", count, " values: ", what));
}

}  // namespace

absl::Status CheckSparse(const ByteChain& payload, size_t count) {
  const absl::StatusOr<SparseHead> head = ReadSparseHead(payload, count);
  if (!head.ok()) return head.status();
  const size_t begin = SparseHeadBytes(*head);
  const absl::StatusOr<size_t> bytes = DensePayloadBytes({payload, begin, head->sent_count});
  if (!bytes.ok()) return WithCodec(head->id, count, bytes.status().message());
  // The indices of a topk payload come behind.
  const bool long_enough = payload.size() >= begin + *bytes;
  if (!long_enough || (head->id == CodecId::kRandomK && payload.size() > begin + *bytes)) {
    return WithCodec(head->id, count,
                     absl::StrCat("want ", begin + *bytes, " bytes for k = ", head->sent_count,
                                  ", got ", payload.size()));
  }
  return SparseReader(payload, count).Check();
}

bool SparseIsWithin(const ByteChain& payload, size_t count, float limit) {
  return SparseReader(payload, count).IsWithin(limit);
}

void DecodeSparse(const ByteChain& payload, float scale, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  SparseReader(payload, out.size()).ForEachBlock([&](auto indices, auto values) {
    kernels::Scatter(indices, values, scale, out);
  });
}

void DecodeSparseInBlocks(const ByteChain& payload, float scale, size_t count,
                          BlockFunction block) {
  std::array<float, kDecodedBlock> values;
  values.fill(0.0f);
  size_t first = 0;
  const auto finish_block = [&] {
    const size_t n = std::min(values.size(), count - first);
    block(first, std::span<const float>(values).first(n));
    values.fill(0.0f);
    first += n;
  };
  SparseReader(payload, count).ForEachBlock([&](auto indices, auto sent) {
    for (size_t j = 0; j < indices.size(); ++j) {
      while (indices[j] - first >= values.size()) finish_block();
      values[indices[j] - first] = scale * sent[j];
    }
  });
  while (first < count) finish_block();
}

void DecodeSparseAdd(const ByteChain& payload, float scale, std::span<float> sum) {
  SparseReader(payload, sum.size()).ForEachBlock([&](auto indices, auto values) {
    kernels::ScatterAdd(indices, values, scale, sum);
  });
}

void ForEachSent(const ByteChain& payload, size_t count, SentFunction block) {
  SparseReader(payload, count).ForEachBlock(block);
}

}  // namespace thinwire
