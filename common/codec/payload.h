// CheckedPayload: a well-formed payload of a known number of values. It is the only type that
// decoders accept.
//
//   payload = codec id (1 byte) | body
//
// A payload comes from a peer as bytes. CheckPayload accepts or refuses it. The functions below
// read an accepted payload without further checks and never out of bounds. NaN and infinity are
// well-formed: PayloadIsFinite and PayloadIsWithin find them.
//
// The bytes may lie in several pieces, and values may straddle them. Dense payloads are decoded in
// place; the indices of a topk payload in several pieces are copied together first.
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
#include "common/byte_chain.h"
#include "common/codec/family/codec_id.h"
#include "common/codec/family/value_format.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/codec/table.h"

namespace thinwire {

class CheckedPayload {
 public:
  // No payload: no bytes and no values. Not to be decoded.
  CheckedPayload() = default;

  const ByteChain& bytes() const { return bytes_; }
  // True for a default-constructed object.
  bool empty() const { return bytes_.empty(); }
  size_t count() const { return count_; }
  // REQUIRES, for the functions below: !empty().
  const CodecRow& row() const { return *row_; }
  CodecId codec() const { return row_->id; }
  // REQUIRES: row().dense().
  ValueBody body() const { return {bytes_, 1, count_}; }
  // REQUIRES: !row().dense().
  const SparseLayout& entries() const { return *entries_; }

  // Keeps OWNER alive as long as any copy of the bytes.
  void Hold(std::shared_ptr<const void> owner) { bytes_.Hold(std::move(owner)); }

  // Two payloads of equal bytes and counts are equal.
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
};

// Checks a payload of COUNT values. Allocates nothing that grows with a number read from the
// payload. Errors: InvalidArgument "fp32 payload of 1024 values: wrong length (expected 4097 bytes,
// got 4000)".
absl::StatusOr<CheckedPayload> CheckPayload(ByteChain payload, size_t count);

// Returns the CheckedPayload of a payload that an encoder of this process wrote from COUNT values.
// Skips the pass over the indices of a sparse payload, so it takes constant time. Ends the process
// if the payload is not well-formed.
CheckedPayload EncodedPayload(ByteChain payload, size_t count);

// Returns an fp32 payload of VALUES without a copy. OWNER keeps the values alive, and they must not
// change while it does.
ByteChain LendFp32(std::span<const float> values, std::shared_ptr<const void> owner);

// The functions below REQUIRE that the payload is not empty(), and that spans of values have
// payload.count() values.

inline CodecId PayloadCodec(const CheckedPayload& payload) { return payload.codec(); }

// Returns whether all values are finite. Like PayloadIsWithin, it tests every entry of a codebook's
// tables.
bool PayloadIsFinite(const CheckedPayload& payload);
// Returns whether all values are finite and have magnitudes up to LIMIT. REQUIRES: LIMIT is finite
// and not negative.
bool PayloadIsWithin(const CheckedPayload& payload, float limit);

// out = decode(payload)
void DecodePayload(const CheckedPayload& payload, std::span<float> out);
// out = scale * decode(payload)
void DecodePayloadScaled(const CheckedPayload& payload, float scale, std::span<float> out);
// sum += scale * decode(payload)
void DecodePayloadAdd(const CheckedPayload& payload, float scale, std::span<float> sum);

// Calls block(first, values) with SCALE times the decoded values from index FIRST on, in order and
// at most kDecodedBlock at a time. The span is valid during the call. For code that reads each
// value once and needs no array of them.
using BlockFunction = absl::FunctionRef<void(size_t first, std::span<const float> values)>;
inline constexpr size_t kDecodedBlock = 2048;  // 8 KiB: stays in the first-level cache
void DecodePayloadInBlocks(const CheckedPayload& payload, float scale, BlockFunction block);

// Returns whether the payload holds some of the values and their indices (topk, randomk).
bool PayloadIsSparse(const CheckedPayload& payload);
// Calls block(indices, values) for the entries of a sparse payload, up to 2,048 at a time, with
// ascending indices. Both spans are valid during the call. REQUIRES: PayloadIsSparse(payload).
using EntryFunction = SparseLayout::EntryFunction;
void ForEachPayloadEntry(const CheckedPayload& payload, EntryFunction block);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_PAYLOAD_H_
