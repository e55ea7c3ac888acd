// Converts the bytes of a fuzzer into a payload, and checks properties that every payload must
// have.
//
//   input = count % 256 | count / 256 (lower 4 bits) | bytes per piece - 1 | codec | body
//
// COUNT is the number of values. The payload is the codec id and the body, split into pieces. Each
// piece has its own allocation, so that a sanitizer detects reads beyond its end. A family is a
// group of codecs that share a decoder; the fourth byte of the input selects a codec of the family.
// In topk payloads, ReadInput replaces the lowest bit of the first byte of the body with the
// family's index coder.
#ifndef THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_
#define THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/codec/table.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

struct Family {
  std::string name;
  std::vector<CodecId> codecs;
  std::optional<IndexCoder> indices;  // the index coder of topk payloads
};

// Returns the families number_formats, codebooks, randomk, topk_elias_fano, topk_golomb_rice and
// powersgd, dct_topk.
std::vector<Family> Families();

// Returns the seeds of the fuzzer for FAMILY: inputs of ReadInput that contain payloads written by
// the codecs of FAMILY. The result is the same on every machine.
std::vector<std::vector<std::byte>> Seeds(const Family& family);

struct PayloadInput {
  size_t count = 0;
  ByteChain payload;
};

// Converts INPUT into a payload. Returns nullopt if INPUT is too short.
std::optional<PayloadInput> ReadInput(const Family& family, std::span<const std::byte> input);

// Checks that all functions that decode the payload give the same values, and that no value exceeds
// a limit that PayloadIsWithin confirms. Returns a description of the first fault, or "" if there
// is none or if CheckPayload refuses the payload.
std::string Fault(const PayloadInput& input);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_
