// The codec specs and arrays that the codec tests use as inputs, and small helper functions. For
// tests only.
#ifndef THINWIRE_COMMON_CODEC_CODEC_CASES_H_
#define THINWIRE_COMMON_CODEC_CODEC_CASES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// Returns the specs that the codec tests use: every codec of the codec table with default settings,
// some codecs with other settings, and topk with several value codecs and both index coders.
std::vector<CodecSpec> AllCodecSpecs();

// Returns a name for the tests of SPEC, such as "topk_30_bf16": letters, digits and underscores.
std::string SpecName(const CodecSpec& spec);

// Returns whether the codec of SPEC encodes each value in a number format, so that a decoded value
// does not depend on other values.
bool HasFixedValues(const CodecSpec& spec);

// Returns an upper bound of the codec's relative error |v - decode(encode(v))|^2 / |v|^2, where v
// is the sum of a residual and a normally distributed gradient of COUNT values. No error in a
// thousand measured arrays exceeded the bound. For randomk, the bound holds only for the mean of
// many arrays. The bound of table_1 is above 1.
double MaxNormalLoss(const CodecSpec& spec, size_t count);

// Each function returns COUNT random values of the distribution in its name. Equal seeds give equal
// values on every machine.
std::vector<float> Gauss(size_t count, uint32_t seed);
std::vector<float> Laplace(size_t count, uint32_t seed);
std::vector<float> StudentT3(size_t count, uint32_t seed);
// Each value is exp(2 z) with a random sign, where z is normally distributed.
std::vector<float> LogNormal2(size_t count, uint32_t seed);

// Returns the payload that CODEC writes for VALUES.
std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> values);
// Return the decoded values of PAYLOAD. The overload for bytes calls CheckPayload first. REQUIRES:
// PAYLOAD is well-formed.
std::vector<float> Decoded(const CheckedPayload& payload);
std::vector<float> Decoded(const ByteChain& payload, size_t count);

// Returns a topk payload with elias_fano indices and fp32 values. It contains the elements of
// VALUES at INDICES, whereas the topk codec chooses the indices by magnitude. REQUIRES: INDICES is
// ascending and its elements are below values.size() < 2^32.
ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices);

// Returns the normalized mean squared error of A relative to B: sum |a - b|^2 / sum |b|^2.
double Nmse(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_CASES_H_
