// The codec specs and arrays that the codec tests use as inputs, and small helper functions. For
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

// Returns whether the codec encodes each value in a number format, so that a decoded value does not
// depend on other values.
bool HasFixedValues(const CodecSpec& spec);

// Returns an upper bound of |v - decode(encode(v))|^2 / |v|^2, where v is the sum of a residual and
// a normally distributed gradient of COUNT values. The bound is above the worst of a thousand
// arrays. The bound of randomk is for the mean of many arrays. The bound of table_1 is above 1.
double MaxNormalLoss(const CodecSpec& spec, size_t count);

// Each function returns COUNT random values of a distribution. Equal seeds give equal values on
// every machine.
std::vector<float> Gauss(size_t count, uint32_t seed);
std::vector<float> Laplace(size_t count, uint32_t seed);
std::vector<float> StudentT3(size_t count, uint32_t seed);
std::vector<float> LogNormal2(size_t count, uint32_t seed);  // exp(2 z) with a random sign

// Returns the payload that CODEC writes for VALUES.
std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> values);
// Returns the decoded values. The second function calls CheckPayload first. REQUIRES: PAYLOAD is
// well-formed.
std::vector<float> Decoded(const CheckedPayload& payload);
std::vector<float> Decoded(const ByteChain& payload, size_t count);

// Returns an elias_fano topk payload of VALUES at INDICES, in fp32. Unlike the topk codec it sends
// exactly the given entries. REQUIRES: INDICES ascends and is below values.size() < 2^32.
ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices);

// Returns the normalized mean squared error: sum |a - b|^2 / sum |b|^2.
double Nmse(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_CASES_H_
