// The codec specs and arrays that the tests of codecs run over, and small helpers for them. For
// tests only.
#ifndef THINWIRE_COMMON_CODEC_CODEC_CASES_H_
#define THINWIRE_COMMON_CODEC_CODEC_CASES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/byte_chain.h"
#include "common/codec/codec.h"

namespace thinwire {

// Returns every codec of the table with default settings, some codecs with other settings, and topk
// with several value codecs and both index coders.
std::vector<CodecSpec> AllCodecSpecs();

// Returns a test name such as "topk_30_bf16": letters, digits and underscores.
std::string SpecName(const CodecSpec& spec);

// Returns whether values are encoded in a number format, so that the decoded value does not depend
// on other values.
bool HasFixedValues(const CodecSpec& spec);

// Returns an upper bound of |v - decode(encode(v))|^2 / |v|^2 for the sum v of a residual and a
// normal gradient of COUNT values: above the worst of a thousand arrays. The bound of randomk holds
// for the mean of many arrays only. table_1 has no bound below 1.
double MaxNormalLoss(const CodecSpec& spec, size_t count);

// Arrays of random values from SEED, the same on every machine.
std::vector<float> Gauss(size_t count, uint32_t seed);
std::vector<float> Laplace(size_t count, uint32_t seed);
std::vector<float> StudentT3(size_t count, uint32_t seed);
std::vector<float> LogNormal2(size_t count, uint32_t seed);  // exp(2 z) with a random sign

// Returns the payload that CODEC writes for VALUES.
std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> values);
// Returns the decoded values. The second form checks PAYLOAD first, which must be well-formed.
std::vector<float> Decoded(const CheckedPayload& payload);
std::vector<float> Decoded(const ByteChain& payload, size_t count);

// Returns an elias_fano topk payload of VALUES at INDICES, in fp32. Unlike the topk codec it sends
// exactly the given entries. REQUIRES: INDICES ascends and is below values.size() < 2^32.
ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices);

// sum |a - b|^2 / sum |b|^2
double Nmse(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_CASES_H_
