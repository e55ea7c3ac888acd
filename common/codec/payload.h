// CheckedPayload: a well-formed payload of a known number of values. It is the only type that
// decoders accept.
//
//   payload = codec id (1 byte) | body
//
// CheckPayload accepts or refuses the bytes that a peer sent as a payload. The functions below read
// an accepted payload without further checks and never out of bounds. A well-formed payload may
// contain NaN and infinity: PayloadIsFinite and PayloadIsWithin detect them.
//
// The bytes may lie in several pieces of memory, and a value may straddle two pieces. Dense
// payloads are decoded without a copy. The indices of a topk payload are copied before decoding if
// they lie in several pieces.
//
// Copying a CheckedPayload shares its bytes. Immutable. Thread-safe.
#ifndef THINWIRE_COMMON_CODEC_PAYLOAD_H_
#define THINWIRE_COMMON_CODEC_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/codec/family/codec_id.h"
#include "common/codec/family/value_format.h"
#include "common/codec/low_rank/low_rank_payload.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/codec/table.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

class CheckedPayload {
 public:
  // Creates an empty object, which has no bytes and no values and must not be decoded.
  CheckedPayload() = default;

  const ByteChain& bytes() const { return bytes_; }
  // Returns true if this object was created by the default constructor and has no payload.
  bool empty() const { return bytes_.empty(); }
  size_t count() const { return count_; }
  // The member functions below REQUIRE that the object is not empty().
  const CodecRow& row() const { return *row_; }
  CodecId codec() const { return row_->id; }
  // REQUIRES: row().dense().
  ValueBody body() const { return {bytes_, 1, count_}; }
  // The values of a transform codec are coefficients. REQUIRES: row().sparse is set.
  const SparseLayout& entries() const { return *entries_; }
  // REQUIRES: row().family is CodecFamily::kLowRank.
  const LowRankLayout& low_rank() const { return *low_rank_; }

  // Keeps OWNER alive as long as this object, or a copy that is made later, refers to the bytes.
  void Hold(std::shared_ptr<const void> owner) { bytes_.Hold(std::move(owner)); }

  // Two objects are equal if they have equal bytes and equal numbers of values.
  friend bool operator==(const CheckedPayload& a, const CheckedPayload& b) {
    return a.count_ == b.count_ && a.bytes_ == b.bytes_;
  }

 private:
  friend absl::StatusOr<CheckedPayload> CheckPayload(ByteChain payload, size_t count);
  friend CheckedPayload EncodedPayload(ByteChain payload, size_t count);
  static absl::StatusOr<CheckedPayload> Make(ByteChain payload, size_t count, bool check_indices);

  ByteChain bytes_;
  size_t count_ = 0;
  const CodecRow* row_ = nullptr;
  std::optional<SparseLayout> entries_;
  std::optional<LowRankLayout> low_rank_;
};

// Checks a payload of COUNT values. No number in the payload determines the size of an allocation.
// Errors: InvalidArgument "fp32 payload of 1024 values: wrong length (expected 4097 bytes, got
// 4000)".
absl::StatusOr<CheckedPayload> CheckPayload(ByteChain payload, size_t count);

// Returns the CheckedPayload of a payload that an encoder of this process wrote from COUNT values.
// Does not check the indices of a sparse payload, and therefore takes constant time. Terminates the
// process if another part of the payload is malformed.
CheckedPayload EncodedPayload(ByteChain payload, size_t count);

// Returns an fp32 payload that refers to VALUES without a copy. OWNER keeps VALUES alive. VALUES
// must not change as long as the payload exists.
ByteChain LendFp32(std::span<const float> values, std::shared_ptr<const void> owner);

// The functions below REQUIRE that the payload is not empty(), and that spans of values have
// payload.count() values.

inline CodecId PayloadCodec(const CheckedPayload& payload) { return payload.codec(); }

// Returns whether all values are finite. Like PayloadIsWithin, it tests every entry of a codebook's
// tables.
bool PayloadIsFinite(const CheckedPayload& payload);
// Returns whether all values are finite and have magnitudes up to LIMIT. Tests upper bounds of the
// values of a low-rank payload. REQUIRES: LIMIT is finite and not negative.
bool PayloadIsWithin(const CheckedPayload& payload, float limit);

// out = decode(payload)
void DecodePayload(const CheckedPayload& payload, std::span<float> out);
// Sets `out` to `scale` times the decoded values of `payload`.
void DecodePayloadScaled(const CheckedPayload& payload, float scale, std::span<float> out);
// Adds `scale` times the decoded values of `payload` to `sum`.
void DecodePayloadAdd(const CheckedPayload& payload, float scale, std::span<float> sum);

// Decodes in blocks of at most kDecodedBlock values. Calls block(first, values) for each block in
// order, where `values` are SCALE times the decoded values and `first` is the index of the first
// one. The span is valid during the call. For callers that read each value once and need no array.
using BlockFunction = absl::FunctionRef<void(size_t first, std::span<const float> values)>;
inline constexpr size_t kDecodedBlock = 2048;  // 8 KiB: stays in the first-level cache
void DecodePayloadInBlocks(const CheckedPayload& payload, float scale, BlockFunction block);

// Returns whether the payload is sparse (topk, randomk): it contains only some values and their
// indices. A powersgd or dct_topk payload is not sparse: it gives every value.
bool PayloadIsSparse(const CheckedPayload& payload);
// Calls block(indices, values) for the entries of a sparse payload, up to 2,048 at a time, with
// ascending indices. Both spans are valid during the call. REQUIRES: PayloadIsSparse(payload).
using EntryFunction = SparseLayout::EntryFunction;
void ForEachPayloadEntry(const CheckedPayload& payload, EntryFunction block);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_PAYLOAD_H_
