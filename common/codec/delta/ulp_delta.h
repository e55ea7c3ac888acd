// ULP deltas: the exact changes of an array, in fewer bytes than the new values.
//
// Floats are numbered in ascending order of value (kernels/select/float_order.h). An update changes
// the number of a float by little, so the difference of the numbers takes fewer bits than the new
// value. The old value and the difference determine the new value:
//
//   number(v)  = bits(v) if the sign bit is clear, else bits(v) xor 0x7FFFFFFF, as a 32-bit integer
//   difference = number(new) - number(old), modulo 2^32: the distance in units in the last place
//
//   payload = k (4 bytes) | order (1 byte) | k indices (elias_fano of index_code.h) | k codes
//
// k is the number of values that change. The code of entry i is the exponential Golomb code of
// u = 2 |difference| - 1 - (difference < 0). Let q = u + 2^order, and let w be the
// number of bits of q. The code consists of w - 1 - order zeros, a one, and the w - 1 low bits of
// q. Bits fill each byte from the lowest bit on, and zeros fill the last byte.
//
// The encoder chooses the order that makes the codes shortest. In training, a difference takes 23
// to 28 bits, and a value in fp32 takes 32 (docs/deltas.md). (Golomb 1966; Teuhola 1978.)
#ifndef THINWIRE_COMMON_CODEC_DELTA_ULP_DELTA_H_
#define THINWIRE_COMMON_CODEC_DELTA_ULP_DELTA_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// Returns the payload that changes FROM to TO at INDICES. REQUIRES: from.size() == to.size() <
// 2^32; INDICES is ascending and its elements are below that size; the bits of FROM and TO differ
// at each of these indices. Thread-safe.
ByteChain EncodeUlpDelta(std::span<const float> from, std::span<const float> to,
                         std::span<const uint32_t> indices);

// A well-formed ULP delta of a known number of values. Copying it shares its bytes. Immutable.
// Thread-safe.
class UlpDelta {
 public:
  // Checks a payload for an array of COUNT values. No number in the payload determines the size of
  // an allocation. Errors: InvalidArgument if the payload is malformed.
  static absl::StatusOr<UlpDelta> Check(ByteChain payload, size_t count);

  const ByteChain& bytes() const { return bytes_; }
  // Returns the number of values in the array.
  size_t count() const { return count_; }
  // Returns the number of values that change.
  size_t entry_count() const { return entry_count_; }

  // Calls block(indices, differences) for consecutive blocks of at most 1,024 entries, with
  // ascending indices. Both spans are valid during the call.
  using EntryFunction = absl::FunctionRef<void(std::span<const uint32_t> indices,
                                               std::span<const uint32_t> differences)>;
  void ForEachEntry(EntryFunction block) const;

  // Changes VALUES from the old values to the new ones. REQUIRES: values.size() == count().
  void Apply(std::span<float> values) const;

 private:
  UlpDelta(ByteChain bytes, size_t count, size_t entry_count);

  ByteChain bytes_;
  size_t count_;
  size_t entry_count_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_DELTA_ULP_DELTA_H_
