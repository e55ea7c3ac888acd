#include "common/codec/codec_cases.h"

#include <cmath>
#include <numbers>
#include <random>

namespace thinwire {
namespace {

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
  const CodecId some_values[] = {CodecId::kFp32, CodecId::kFp16, CodecId::kBf16, CodecId::kFp8E5m2,
                                 CodecId::kFp8E4m3};
  for (const std::string_view name : DenseCodecNames()) specs.push_back(*ParseCodec(name));
  specs.push_back({.id = CodecId::kOneBit, .onebit_group = 64});
  specs.push_back({.id = CodecId::kOneBitSign, .onebit_group = 8});
  specs.push_back({.id = CodecId::kQsgd, .qsgd_levels = 127});
  for (const double density : {0.01, 0.3, 1.0}) {
    for (const CodecId values : some_values) {
      specs.push_back({.id = CodecId::kTopK, .density = density, .values = values});
    }
  }
  for (const char* values : {"fp32", "log_4", "lloyd_4", "onebit", "qsgd"}) {
    specs.push_back({.id = CodecId::kTopK,
                     .density = 0.02,
                     .values = ParseCodec(values)->id,
                     .indices = IndexCoder::kGolombRice});
  }
  specs.push_back({.id = CodecId::kRandomK, .density = 0.1});
  specs.push_back({.id = CodecId::kRandomK, .density = 0.5, .values = CodecId::kInt8});
  return specs;
}

std::string SpecName(const CodecSpec& spec) {
  std::string name(CodecName(spec.id));
  if (spec.onebit_group > 0) name += "_by_" + std::to_string(spec.onebit_group);
  if (spec.qsgd_levels != CodecSpec().qsgd_levels) name += "_" + std::to_string(spec.qsgd_levels);
  if (IsDense(spec.id)) return name;
  name += "_" + std::to_string(std::lround(100 * spec.density));
  name += "_" + std::string(CodecName(spec.values));
  return spec.indices == IndexCoder::kGolombRice ? name + "_rice" : name;
}

bool HasFixedValues(const CodecSpec& spec) {
  const CodecId values = IsDense(spec.id) ? spec.id : spec.values;
  return values <= CodecId::kFp8E4m3;
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
