#include "common/codec/codec_cases.h"

#include <cmath>
#include <numbers>
#include <random>

namespace thinwire {
namespace {

constexpr CodecId kDense[] = {CodecId::kFp32, CodecId::kFp16, CodecId::kBf16, CodecId::kFp8E5m2,
                              CodecId::kFp8E4m3};

// The engine is the same everywhere, the library's distributions are not: hence the formulas.
class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}

  // In (0, 1).
  double Uniform() { return (static_cast<double>(random_()) + 0.5) / 4294967296.0; }
  double Sign() { return random_() % 2 == 0 ? 1 : -1; }
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  std::mt19937 random_;
};

template <typename Next>
std::vector<float> Fill(size_t count, const Next& next) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(next());
  return values;
}

}  // namespace

std::vector<CodecSpec> AllCodecSpecs() {
  std::vector<CodecSpec> specs;
  for (const CodecId id : kDense) specs.push_back({.id = id});
  for (const double density : {0.01, 0.3, 1.0}) {
    for (const CodecId values : kDense) {
      specs.push_back({.id = CodecId::kTopK, .density = density, .values = values});
    }
  }
  return specs;
}

std::string SpecName(const CodecSpec& spec) {
  if (spec.id != CodecId::kTopK) return std::string(CodecName(spec.id));
  return "topk_" + std::to_string(std::lround(100 * spec.density)) + "_" +
         std::string(CodecName(spec.values));
}

std::vector<float> Gauss(size_t count, uint32_t seed) {
  Draws draws(seed);
  return Fill(count, [&] { return draws.Normal(); });
}

std::vector<float> Laplace(size_t count, uint32_t seed) {
  Draws draws(seed);
  return Fill(count, [&] { return -std::log(draws.Uniform()) * draws.Sign(); });
}

std::vector<float> StudentT3(size_t count, uint32_t seed) {
  Draws draws(seed);
  return Fill(count, [&] {
    double squares = 0;
    for (int i = 0; i < 3; ++i) squares += std::pow(draws.Normal(), 2);
    return draws.Normal() / std::sqrt(squares / 3);
  });
}

std::vector<float> LogNormal2(size_t count, uint32_t seed) {
  Draws draws(seed);
  return Fill(count, [&] { return std::exp(2 * draws.Normal()) * draws.Sign(); });
}

std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> values) {
  std::vector<std::byte> payload(codec.MaxPayloadBytes(values.size()));
  payload.resize(codec.Encode(values, Turn(), payload));
  return payload;
}

std::vector<float> Decoded(const ByteChain& payload, size_t count) {
  std::vector<float> values(count, -1.0f);
  DecodePayload(payload, values);
  return values;
}

double Nmse(std::span<const float> a, std::span<const float> b) {
  double error = 0, power = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - b[i], 2);
    power += std::pow(double{b[i]}, 2);
  }
  return error / power;
}

}  // namespace thinwire
