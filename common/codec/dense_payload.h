// A dense payload, codec byte and all, that may lie within another one: the values of a sparse
// payload are one. Number formats (dense.h) and codebooks (codebook_values.h) behind one face.
// Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_DENSE_PAYLOAD_H_
#define THINWIRE_COMMON_CODEC_DENSE_PAYLOAD_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"

namespace thinwire {

// Where it begins, and how many values it has. Borrows the payload.
struct DensePayload {
  const ByteChain& payload;
  size_t offset;
  size_t count;
};

// How long it must be, from its first bytes. Errors: InvalidArgument if they are not those of a
// dense payload.
absl::StatusOr<size_t> DensePayloadBytes(const DensePayload& dense);

// What the length cannot tell. Errors: InvalidArgument. REQUIRES: DensePayloadBytes passed, and
// that many bytes are there.
absl::Status CheckDensePayload(const DensePayload& dense);

// The rest REQUIRE that CheckDensePayload passed.

// Whether the values are finite and of magnitudes up to LIMIT; of a codebook, whether all that a
// code could stand for is.
bool DensePayloadIsWithin(const DensePayload& dense, float limit);
// out = scale * the values from number FIRST. REQUIRES: FIRST is a multiple of 8.
void DecodeDensePayload(const DensePayload& dense, size_t first, float scale, std::span<float> out);
// sum += scale * values
void DecodeDensePayloadAdd(const DensePayload& dense, float scale, std::span<float> sum);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_DENSE_PAYLOAD_H_
