// PayloadInput: what a fuzzer of payloads makes of its bytes, and what must hold of any payload.
//
//   input = count % 256 | count / 256 (lower 4 bits) | bytes of a piece - 1 | which codec | body
//
// A payload is the codec's number and the body, cut into pieces that each have memory of their own,
// so that a sanitizer sees their ends. A family is the codecs that share a decoder: the input's
// fourth byte picks one of them, and of topk the lowest bit of the body is its family's coder.
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
  std::optional<IndexCoder> indices;  // of topk
};

// number_formats, codebooks, randomk, topk_elias_fano, topk_golomb_rice.
std::vector<Family> Families();

// Inputs that are payloads of FAMILY as its encoders write them, the same on every machine.
std::vector<std::vector<std::byte>> Seeds(const Family& family);

struct PayloadInput {
  size_t count = 0;
  ByteChain payload;
};

// Nothing of an input that is too short.
std::optional<PayloadInput> ReadInput(const Family& family, std::span<const std::byte> input);

// What is wrong with how the payload is read; empty if nothing is: it is refused, or every way to
// read it gives the same values, and none is beyond a limit that it is said to be within.
std::string Fault(const PayloadInput& input);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_FUZZ_PAYLOAD_INPUT_H_
