#include "common/codec/codec_cases.h"

#include <cmath>
#include <numbers>
#include <random>
#include <utility>

#include "common/codec/sparse/index_code.h"
#include "common/codec/sparse/sparse_payload.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

// Draws random numbers that are equal on all machines. The C++ standard defines the numbers of
// std::mt19937 but not the algorithms of its distributions, so this class implements the
// distributions.
class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}

  // Returns a uniformly distributed number in (0, 1).
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
  specs.push_back({.id = CodecId::kPowerSgd});
  specs.push_back({.id = CodecId::kDctTopK, .density = 0.05});
  specs.push_back({.id = CodecId::kDctTopK,
                   .density = 0.3,
                   .values = CodecId::kFp8E4m3,
                   .indices = IndexCoder::kGolombRice});
  specs.push_back({.id = CodecId::kPowerSgd, .values = CodecId::kFp8E4m3});
  specs.push_back({.id = CodecId::kPowerSgd, .values = CodecId::kBf16, .powersgd_rank = 1});
  return specs;
}

std::string SpecName(const CodecSpec& spec) {
  std::string name(CodecName(spec.id));
  if (spec.onebit_group > 0) name += "_by_" + std::to_string(spec.onebit_group);
  if (spec.qsgd_levels != CodecSpec().qsgd_levels) name += "_" + std::to_string(spec.qsgd_levels);
  if (IsDense(spec.id)) return name;
  const bool low_rank = RowOf(spec.id).family == CodecFamily::kLowRank;
  name += "_" + std::to_string(low_rank ? spec.powersgd_rank : std::lround(100 * spec.density));
  name += "_" + std::string(CodecName(spec.values));
  return spec.indices == IndexCoder::kGolombRice ? name + "_rice" : name;
}

bool HasFixedValues(const CodecSpec& spec) {
  const CodecFamily family = RowOf(spec.id).family;
  if (family == CodecFamily::kLowRank || family == CodecFamily::kTransform) return false;
  const CodecId values = IsDense(spec.id) ? spec.id : spec.values;
  return RowOf(values).family == CodecFamily::kDense;
}

double MaxNormalLoss(const CodecSpec& spec, size_t count) {
  if (RowOf(spec.id).family == CodecFamily::kLowRank) {
    // A random subspace of `rank` dimensions contains rank/rows of the power of a matrix of `rows`
    // rows on average. A step of the power iteration finds a better subspace in most arrays.
    const auto all = static_cast<double>(count);
    const double rows = std::ceil(all / std::ceil(std::sqrt(all)));
    return 1 - 0.6 * spec.powersgd_rank / rows;
  }
  if (!IsDense(spec.id)) {
    // Let v be an array of n values. The squares of its k largest values sum to at least k/n of
    // |v|^2 (Stich et al. 2018, lemma A.1). The squares of k random values sum to k/n of |v|^2 on
    // average.
    CodecSpec values = spec;
    values.id = spec.values;
    const auto all = static_cast<double>(count);
    return 1 - std::round(spec.density * all) / all * (1 - MaxNormalLoss(values, count));
  }
  const auto table_loss = [](CodecId one_bit, CodecId id) {
    return 0.26 * std::pow(0.4, static_cast<int>(id) - static_cast<int>(one_bit) - 1);
  };
  switch (spec.id) {
    case CodecId::kFp32:
      return 0;
    case CodecId::kFp16:
    case CodecId::kBf16:
      return 4e-6;
    case CodecId::kFp8E5m2:
    case CodecId::kFp8E4m3:
      return 4e-3;
    case CodecId::kInt8:
      return 1e-4;
    case CodecId::kQsgd:
      return spec.qsgd_levels == 127 ? 2.2e-4 : 0.08;
    case CodecId::kLog4:
    case CodecId::kFp4E3m0:
      return 0.055;
    case CodecId::kTwoBit:
      return 0.75;
    case CodecId::kOneBit:
    case CodecId::kOneBitSign:
    case CodecId::kLloyd1:
      return 0.46;
    default:
      // Each additional bit of a code reduces the encoding error to less than half. The constants
      // added below stand for the error of the few values above the table's largest entry, which
      // does not decrease.
      if (spec.id > CodecId::kLloyd1) return table_loss(CodecId::kLloyd1, spec.id) + 0.003;
      return table_loss(CodecId::kTable1, spec.id) + 0.016;
  }
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
  payload.resize(codec.Encode(values, RandomKeys(), payload));
  return payload;
}

std::vector<float> Decoded(const CheckedPayload& payload) {
  std::vector<float> values(payload.count(), -1.0f);
  DecodePayload(payload, values);
  return values;
}

std::vector<float> Decoded(const ByteChain& payload, size_t count) {
  return Decoded(CheckPayload(payload, count).value());
}

ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices) {
  constexpr IndexCoder kCoder = IndexCoder::kEliasFano;
  const SparseHead head = {.format = kTopKFormat, .entry_count = indices.size(), .coder = kCoder};
  std::vector<float> entries(indices.size());
  kernels::Gather(values, indices, entries);
  const std::vector<std::byte> dense = Encoded(*MakeCodec({}).value(), entries);
  std::vector<std::byte> bytes(head.bytes());
  head.Put(bytes.data());
  bytes.insert(bytes.end(), dense.begin(), dense.end());
  const size_t begin = bytes.size();
  bytes.resize(begin + MaxIndexBytes(kCoder, indices.size(), values.size()));
  EncodeIndices(kCoder, indices, values.size(), bytes.data() + begin);
  return ByteChain(std::move(bytes));
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
