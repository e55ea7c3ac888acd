// The codecs and the arrays that tests of codecs run over. Only tests use it.
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

// Every codec, and some of those with settings at several: topk with each number format and some
// other codecs for its values, and with either coder of indices.
std::vector<CodecSpec> AllCodecSpecs();

// "topk_30_bf16": letters, digits and underscores, as a test's name must be.
std::string SpecName(const CodecSpec& spec);

// Whether a value becomes one of those of a number format, whatever values are beside it.
bool HasFixedValues(const CodecSpec& spec);

// Reproducible: the same values for the same arguments on every machine.
std::vector<float> Gauss(size_t count, uint32_t seed);
std::vector<float> Laplace(size_t count, uint32_t seed);
std::vector<float> StudentT3(size_t count, uint32_t seed);
std::vector<float> LogNormal2(size_t count, uint32_t seed);  // with a random sign

// The payload, of the length that Encode gave.
std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> values);
std::vector<float> Decoded(const ByteChain& payload, size_t count);

// sum |a - b|^2 / sum |b|^2
double Nmse(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_CASES_H_
