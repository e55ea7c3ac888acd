// The sparse family: payloads that hold k of a shard's n values, and their indices. All other
// values decode to 0.
//
//   topk      id | varint(2 k + coder)   | dense payload of the k values | indices (index_code.h)
//   randomk   id | draw (8) | varint(k)  | dense payload of the k values     (drawn_indices.h)
//
// A varint has 7 bits per byte, lowest first, and the top bit of a byte is set if another byte
// follows. It has no more bytes than it needs. The k values form a dense payload of their own, in
// any dense codec.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_SPARSE_PAYLOAD_H_
#define THINWIRE_COMMON_CODEC_SPARSE_SPARSE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/family/codec_id.h"
#include "common/codec/family/value_format.h"

namespace thinwire {

// Describes one codec: where its indices come from.
struct SparseFormat {
  enum class Indices {
    kCoded,  // the payload contains the indices
    kDrawn,  // the indices are computed from the random draw in the head
  };
  CodecId id;
  Indices indices;
};
inline constexpr SparseFormat kTopKFormat = {CodecId::kTopK, SparseFormat::Indices::kCoded};
inline constexpr SparseFormat kRandomKFormat = {CodecId::kRandomK, SparseFormat::Indices::kDrawn};

// The head of a payload. A value type.
struct SparseHead {
  SparseFormat format = kTopKFormat;
  size_t entry_count = 0;                     // k
  IndexCoder coder = IndexCoder::kEliasFano;  // of coded indices
  uint64_t draw = 0;                          // of drawn indices

  // The length of the head. The dense payload of the values follows it.
  size_t bytes() const;
  // Writes the head to OUT, which has bytes() bytes.
  void Put(std::byte* out) const;
};

// Returns k = round(density * count), but at least LEAST and at most COUNT. REQUIRES: least >= 1.
size_t SparseEntryCount(double density, size_t count, size_t least = 1);

// Finds the format of a dense codec by its id byte. Errors: InvalidArgument if no dense codec has
// this id.
using FindValueFormat = absl::FunctionRef<absl::StatusOr<const ValueFormat*>(std::byte id)>;

// The parts of one payload, as Check found them. Immutable. Thread-safe.
class SparseLayout {
 public:
  // Checks a sparse payload of COUNT values. Allocates nothing that grows with a number read from
  // the payload. Errors: InvalidArgument.
  static absl::StatusOr<SparseLayout> Check(const SparseFormat& format, const ByteChain& payload,
                                            size_t count, FindValueFormat find);
  // Like Check, but skips the pass over the indices. For payloads that an encoder of this process
  // wrote.
  static absl::StatusOr<SparseLayout> CheckLengths(const SparseFormat& format,
                                                   const ByteChain& payload, size_t count,
                                                   FindValueFormat find);

  const SparseHead& head() const { return head_; }

  // In the functions below PAYLOAD is the payload that was checked.

  // Returns whether all values are finite and have magnitudes up to LIMIT.
  bool IsWithin(const ByteChain& payload, float limit) const;
  // Calls block(indices, values) for up to 2,048 entries at a time, with ascending indices. Both
  // spans are valid during the call.
  using EntryFunction =
      absl::FunctionRef<void(std::span<const uint32_t> indices, std::span<const float> values)>;
  void ForEachEntry(const ByteChain& payload, EntryFunction block) const;

 private:
  SparseLayout() = default;

  ValueBody Values(const ByteChain& payload) const;
  template <typename Reader>
  void ForEachEntryOf(const ByteChain& payload, Reader reader, EntryFunction block) const;

  SparseHead head_;
  size_t count_ = 0;
  const ValueFormat* values_ = nullptr;
  size_t indices_offset_ = 0;  // of the coded indices, or the payload's end
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_SPARSE_PAYLOAD_H_
