// Encodes all 2^32 floats in both fp8 formats, with the vector code and with the scalar formula.
// Expects the nearest code, which the test derives from the midpoints between adjacent values of
// the format.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convert.h"
#include "kernels/number_format.h"

namespace thinwire::kernels {
namespace {

constexpr uint32_t kBlockValues = 1 << 16;
constexpr uint32_t kBlocks = uint32_t{1} << (31 - 16);  // number of blocks of non-negative floats
constexpr uint32_t kInfinityBits = 0x7F800000;

// Returns the midpoints between the values of adjacent codes, computed from the definition of the
// format.
template <typename Format>
std::array<double, Format::kMaxFinite> Midpoints() {
  const auto value = [](uint32_t code) {
    const int mantissa = static_cast<int>(code & ((1u << Format::kMantissaBits) - 1));
    const int exponent = static_cast<int>(code >> Format::kMantissaBits);
    const int implicit = exponent == 0 ? 0 : 1 << Format::kMantissaBits;
    return std::ldexp(mantissa + implicit,
                      std::max(exponent, 1) - Format::kBias - Format::kMantissaBits);
  };
  std::array<double, Format::kMaxFinite> midpoints;
  for (uint32_t code = 0; code < Format::kMaxFinite; ++code) {
    midpoints[code] = (value(code) + value(code + 1)) / 2;
  }
  return midpoints;
}

// Sets CODES to the nearest codes of the non-negative floats with the bits FIRST, FIRST + 1, ...
// These floats are in ascending order, so their codes are also in ascending order.
template <typename Format>
void NearestCodes(const std::array<double, Format::kMaxFinite>& midpoints, uint32_t first,
                  std::vector<uint8_t>& codes) {
  uint32_t code = 0;
  for (uint32_t i = 0; i < codes.size(); ++i) {
    const uint32_t bits = first + i;
    const double value = std::bit_cast<float>(bits);
    while (code < Format::kMaxFinite &&
           (value > midpoints[code] || (value == midpoints[code] && code % 2 == 1))) {
      ++code;
    }
    codes[i] = static_cast<uint8_t>(bits > kInfinityBits ? Format::kNan : code);
  }
}

// Encodes the floats with the bits FIRST, FIRST + 1, ... and the sign bit SIGN, with the vector
// code and with the scalar formula. Returns the number of codes that differ from WANT, the expected
// codes without sign bits.
template <typename Format>
size_t Differences(uint32_t first, uint32_t sign, const std::vector<uint8_t>& want) {
  std::vector<float> values(want.size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    values[i] = std::bit_cast<float>((first + i) | sign << 31);
  }
  std::vector<uint8_t> codes(want.size());
  Encode<Format>(values, 1.0f, std::as_writable_bytes(std::span(codes)).data());
  size_t differences = 0;
  for (uint32_t i = 0; i < codes.size(); ++i) {
    const bool is_nan = first + i > kInfinityBits;
    const auto expected = static_cast<uint8_t>(want[i] | (is_nan ? 0 : sign << 7));
    differences += codes[i] != expected ? 1 : 0;
    differences += EncodeValue<Format>(values[i]) != expected ? 1 : 0;
  }
  return differences;
}

template <typename Format>
size_t DifferencesOverAllFloats() {
  const auto midpoints = Midpoints<Format>();
  std::atomic<uint32_t> next_block = 0;
  std::atomic<size_t> differences = 0;
  const auto work = [&] {
    std::vector<uint8_t> want(kBlockValues);
    for (uint32_t block; (block = next_block++) < kBlocks;) {
      NearestCodes<Format>(midpoints, block * kBlockValues, want);
      differences += Differences<Format>(block * kBlockValues, 0, want);
      differences += Differences<Format>(block * kBlockValues, 1, want);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  threads.clear();
  return differences;
}

TEST(Fp8ExhaustiveTest, EveryFloatIsEncodedAsTheNearestE5m2) {
  EXPECT_EQ(DifferencesOverAllFloats<Fp8E5m2>(), 0u);
}

TEST(Fp8ExhaustiveTest, EveryFloatIsEncodedAsTheNearestE4m3) {
  EXPECT_EQ(DifferencesOverAllFloats<Fp8E4m3>(), 0u);
}

}  // namespace
}  // namespace thinwire::kernels
