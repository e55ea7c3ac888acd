// PayloadInput: turns the bytes of a fuzzer into a payload, and checks what must hold for every
// payload.
//
//   input = count % 256 | count / 256 (lower 4 bits) | bytes of a piece - 1 | codec | body
//
// The payload is the codec id and the body, split into pieces with memory of their own, so that a
// sanitizer sees their ends. A family is a group of codecs that share a decoder; the fourth byte of
// the input selects one of them. In topk payloads the lowest bit of the body is set to the family's
// index coder.
#ifndef THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_
#define THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/byte_chain.h"
#include "common/codec/table.h"

namespace thinwire {

struct Family {
  std::string name;
  std::vector<CodecId> codecs;
  std::optional<IndexCoder> indices;  // the coder of topk payloads
};

// Returns number_formats, codebooks, randomk, topk_elias_fano and topk_golomb_rice.
std::vector<Family> Families();

// Returns inputs whose payloads the encoders of FAMILY wrote, the same on every machine.
std::vector<std::vector<std::byte>> Seeds(const Family& family);

struct PayloadInput {
  size_t count = 0;
  ByteChain payload;
};

// Returns nullopt if INPUT is too short.
std::optional<PayloadInput> ReadInput(const Family& family, std::span<const std::byte> input);

// Returns "" if CheckPayload refuses the payload, or if all ways to read it give the same values
// and no value exceeds a limit that PayloadIsWithin confirms. Otherwise returns what is wrong.
std::string Fault(const PayloadInput& input);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_
