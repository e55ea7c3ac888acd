// The sparse family: payloads that contain k of a shard's n values and their indices. All other
// values decode to 0.
//
//   topk      id | varint(2 k + coder)   | dense payload of the k values | indices (index_code.h)
//   randomk   id | draw (8) | varint(k)  | dense payload of the k values     (drawn_indices.h)
//
// A varint has 7 bits per byte, the lowest bits first. The top bit of a byte is set if another byte
// of the varint follows. A varint must have the minimum number of bytes. The k values form a
// complete dense payload, in any dense codec. `coder` is 0 or 1, the id of the index coder. `draw`
// is a random number from which the decoder computes the indices.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_SPARSE_PAYLOAD_H_
#define THINWIRE_COMMON_CODEC_SPARSE_SPARSE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/codec/family/codec_id.h"
#include "common/codec/family/value_format.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// Describes one sparse codec: its id and the source of its indices.
struct SparseFormat {
  enum class Indices {
    kCoded,  // the payload contains the indices
    kDrawn,  // the indices are computed from the number `draw` in the head
  };
  CodecId id;
  Indices indices;
};
inline constexpr SparseFormat kTopKFormat = {CodecId::kTopK, SparseFormat::Indices::kCoded};
inline constexpr SparseFormat kRandomKFormat = {CodecId::kRandomK, SparseFormat::Indices::kDrawn};
// Its indices are those of coefficients, not of values (common/codec/transform/dct_top_k.h).
inline constexpr SparseFormat kDctTopKFormat = {CodecId::kDctTopK, SparseFormat::Indices::kCoded};

// The head of a payload. A value type.
struct SparseHead {
  SparseFormat format = kTopKFormat;
  size_t entry_count = 0;                     // the number of sent values
  IndexCoder coder = IndexCoder::kEliasFano;  // the encoding of the indices, if kCoded
  uint64_t draw = 0;                          // randomk: the random seed of the indices; topk: 0

  // Returns the length of the head in bytes. The dense payload of the values follows the head.
  size_t bytes() const;
  // Writes the head to OUT, which has bytes() bytes.
  void Put(std::byte* out) const;
};

// Returns k, the number of values that a sparse codec sends of a shard of COUNT values: density *
// count, rounded, at least LEAST, and at most COUNT. REQUIRES: least >= 1.
size_t SparseEntryCount(double density, size_t count, size_t least = 1);

// The head of a checked sparse payload, and the positions of the payload's values and indices.
// Immutable. Thread-safe.
class SparseLayout {
 public:
  // Checks a sparse payload of a shard of COUNT values. No number in the payload determines the
  // size of an allocation. Errors: InvalidArgument if the payload is malformed.
  static absl::StatusOr<SparseLayout> Check(const SparseFormat& format, const ByteChain& payload,
                                            size_t count, FindValueFormat find);
  // Like Check, except that the indices are not checked. For payloads that an encoder of this
  // process wrote.
  static absl::StatusOr<SparseLayout> CheckLengths(const SparseFormat& format,
                                                   const ByteChain& payload, size_t count,
                                                   FindValueFormat find);

  const SparseHead& head() const { return head_; }

  // In the functions below, PAYLOAD is the payload that was passed to Check or CheckLengths.

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
  // The position of the encoded indices with kCoded, the payload's length with kDrawn.
  size_t indices_offset_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_SPARSE_PAYLOAD_H_
