// Reads the values of a payload whose codec has a codebook (codebook.h), where they lie: also codes
// that straddle pieces. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_VALUES_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_VALUES_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/codebook.h"
#include "common/codec/codec_names.h"

namespace thinwire {

// Where the body is, and how many values it has. Borrows the payload. REQUIRES: Codebook::IsOf(id).
struct CodebookValues {
  CodecId id;
  const ByteChain& payload;
  size_t offset;
  size_t count;
};

// Errors: InvalidArgument if the body's head is none.
absl::StatusOr<Codebook> ReadCodebook(const CodebookValues& values);
// The bytes that the body must have. Errors: InvalidArgument if its head is none.
absl::StatusOr<size_t> CodebookBytes(const CodebookValues& values);
// What the length cannot tell: that the codes which the last unit lacks are 0. Errors:
// InvalidArgument. REQUIRES: as many bytes as CodebookBytes wants.
absl::Status CheckCodebookValues(const CodebookValues& values);

// The rest REQUIRE that CheckCodebookValues passed.

// scale * the value of each code of a group. REQUIRES: table.size() == book.table_size().
void ReadCodebookTable(const CodebookValues& values, const Codebook& book, size_t group,
                       float scale, std::span<float> table);

// Whether all that a code could stand for is finite and of a magnitude up to LIMIT.
bool CodebookIsWithin(const CodebookValues& values, float limit);
// out = scale * the values from number FIRST. REQUIRES: FIRST is a multiple of 8.
void DecodeCodebook(const CodebookValues& values, size_t first, float scale, std::span<float> out);
// sum += scale * values
void DecodeCodebookAdd(const CodebookValues& values, float scale, std::span<float> sum);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_VALUES_H_
