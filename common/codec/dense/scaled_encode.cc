#include "common/codec/dense/scaled_encode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/convert.h"
#include "kernels/number_format.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

using Format = kernels::Fp8E4m3;

// The number of values in a block. A block of gradients and a block of residuals together fit the
// first-level cache.
constexpr size_t kBlockValues = 2048;

constexpr std::array<float, kBlockValues> kZeros{};

// Splits COUNT values into consecutive blocks. Calls block(first, n) for each block, where FIRST is
// the index of its first value and N its number of values.
template <typename Block>
void ForEachBlock(size_t count, const Block& block) {
  for (size_t first = 0; first < count; first += kBlockValues) {
    block(first, std::min(kBlockValues, count - first));
  }
}

constexpr float kLargestCode = kernels::DecodeValue<Format>(Format::kMaxFinite);

}  // namespace

uint8_t ScaleByteFor(float largest_magnitude) {
  // The largest fp8_e4m3 number is 448 = 1.75 * 2^8. The unit for a magnitude m * 2^e with 1 <= m
  // <= 1.75 is therefore 2^(e - 8), and for m > 1.75 it is 2^(e - 7).
  const uint32_t bits = std::bit_cast<uint32_t>(largest_magnitude) & 0x7FFFFFFF;
  const int exponent = static_cast<int>(bits >> 23) - 8;
  const int rounded_up = exponent + ((bits & 0x7FFFFF) > 0x600000 ? 1 : 0);
  return static_cast<uint8_t>(std::clamp(rounded_up, int{kMinScaleByte}, int{kMaxScaleByte}));
}

float UnitOfScaleByte(uint8_t byte) {
  return std::bit_cast<float>(static_cast<uint32_t>(byte) << 23);
}

void EncodeScaled(std::span<const float> values, std::byte* out) {
  std::byte* const codes = out + 1;
  uint8_t scale = kMinScaleByte;
  size_t grown_at = 0;
  auto* encode = kernels::EncodeWithin<Format>;
  ForEachBlock(values.size(), [&](size_t first, size_t n) {
    const auto block = values.subspan(first, n);
    const float largest = kernels::LargestMagnitude(block);
    const uint8_t wanted = ScaleByteFor(largest);
    if (wanted > scale) grown_at = first;
    scale = std::max(scale, wanted);
    const float unit = UnitOfScaleByte(scale);
    // EncodeWithin requires that no value exceeds the range of the unit. Values that are not finite
    // or exceed the range of the largest unit must be saturated, which Encode does.
    if (!(largest <= kLargestCode * unit)) encode = kernels::Encode<Format>;
    encode(block, unit, codes + first);
  });
  encode(values.first(grown_at), UnitOfScaleByte(scale), codes);
  *out = std::byte{scale};
}

void EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                          std::byte* out) {
  std::byte* const codes = out + 1;
  uint8_t scale = kMinScaleByte;
  size_t grown_at = 0;
  std::vector<uint8_t> scales;  // one per block
  ForEachBlock(gradient.size(), [&](size_t first, size_t n) {
    const auto added = gradient.subspan(first, n);
    const auto block = residual.subspan(first, n);
    const uint8_t wanted = ScaleByteFor(kernels::LargestMagnitudeOfSum(added, block));
    if (wanted > scale) grown_at = first;
    scale = std::max(scale, wanted);
    scales.push_back(scale);
    kernels::EncodeFeedback<Format>(added, block, UnitOfScaleByte(scale), codes + first);
  });
  ForEachBlock(grown_at, [&](size_t first, size_t n) {
    // Restores v, the sum of gradient and residual, as the decoded value plus the new residual. The
    // result is exact, except for the sign of a zero: a decoded value differs from v by at most
    // half a unit in the last place of the code, so neither the earlier subtraction nor this
    // addition rounds.
    const auto block = residual.subspan(first, n);
    const float unit = UnitOfScaleByte(scales[first / kBlockValues]);
    kernels::DecodeAdd<Format>(codes + first, unit, 1.0f, block);
    kernels::EncodeFeedback<Format>(std::span(kZeros).first(n), block, UnitOfScaleByte(scale),
                                    codes + first);
  });
  *out = std::byte{scale};
}

}  // namespace thinwire
