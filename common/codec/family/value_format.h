// ValueFormat: the payload format of a dense codec, which encodes every value of an array. Each
// dense codec has one ValueFormat object, to which the codec table points. The values in a sparse
// or low-rank payload also use a ValueFormat.
//
// Only CheckedPayload, SparseLayout and the low-rank family call these functions. They decode a
// body only after Check has accepted the body, or after an encoder of this process has written it.
#ifndef THINWIRE_COMMON_CODEC_FAMILY_VALUE_FORMAT_H_
#define THINWIRE_COMMON_CODEC_FAMILY_VALUE_FORMAT_H_

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// The body of a dense payload: the bytes after the codec id. Borrows the chain.
struct ValueBody {
  const ByteChain& chain;
  size_t offset;  // the position of the body in the chain, in bytes
  size_t count;   // the number of values in the body
};

// Immutable. Thread-safe.
class ValueFormat {
 public:
  // Returns the length in bytes that BODY must have. The count and the head of BODY determine the
  // length. Errors: InvalidArgument if the head is malformed.
  virtual absl::StatusOr<size_t> BodyBytes(const ValueBody& body) const = 0;
  // Checks the content of BODY, whose length the caller has checked. Errors: InvalidArgument if
  // BODY is malformed. REQUIRES: the chain has BodyBytes(body) bytes at the offset.
  virtual absl::Status Check(const ValueBody& body) const = 0;

  // The functions below REQUIRE that Check(body) succeeded.

  // Returns whether all values are finite and have magnitudes up to LIMIT. A codebook format tests
  // every entry of its tables, including entries that no value uses.
  virtual bool IsWithin(const ValueBody& body, float limit) const = 0;
  // Decodes out.size() values from index FIRST on, and sets OUT to SCALE times these values.
  // REQUIRES: FIRST is a multiple of 8.
  virtual void Decode(const ValueBody& body, size_t first, float scale,
                      std::span<float> out) const = 0;
  // Decodes all values and adds SCALE times each value to SUM. REQUIRES: sum.size() == body.count.
  virtual void DecodeAdd(const ValueBody& body, float scale, std::span<float> sum) const = 0;

 protected:
  ~ValueFormat() = default;
};

// A function that returns the format of the dense codec with a given id byte. Errors:
// InvalidArgument if no dense codec has this id.
using FindValueFormat = absl::FunctionRef<absl::StatusOr<const ValueFormat*>(std::byte id)>;

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_FAMILY_VALUE_FORMAT_H_
