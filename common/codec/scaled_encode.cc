#include "common/codec/scaled_encode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/codec/scale_byte.h"
#include "kernels/convert.h"
#include "kernels/number_format.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

using Format = kernels::Fp8E4m3;

// So many that a block of gradients and one of residuals stay in the first cache.
constexpr size_t kBlockValues = 2048;

constexpr std::array<float, kBlockValues> kZeros{};

// Calls block(first, n) for the runs of COUNT values.
template <typename Block>
void ForEachBlock(size_t count, const Block& block) {
  for (size_t first = 0; first < count; first += kBlockValues) {
    block(first, std::min(kBlockValues, count - first));
  }
}

constexpr float kLargestCode = kernels::DecodeValue<Format>(Format::kMaxFinite);

}  // namespace

void EncodeScaled(std::span<const float> values, std::byte* out) {
  std::byte* const codes = out + 1;
  uint8_t scale = kSmallestScaleByte;
  size_t grown_at = 0;
  auto* encode = kernels::EncodeWithin<Format>;
  ForEachBlock(values.size(), [&](size_t first, size_t n) {
    const auto block = values.subspan(first, n);
    const float largest = kernels::LargestMagnitude(block);
    const uint8_t wanted = ScaleByteFor(largest);
    if (wanted > scale) grown_at = first;
    scale = std::max(scale, wanted);
    const float unit = UnitOfScaleByte(scale);
    // Beyond the largest unit, or not finite.
    if (!(largest <= kLargestCode * unit)) encode = kernels::Encode<Format>;
    encode(block, unit, codes + first);
  });
  encode(values.first(grown_at), UnitOfScaleByte(scale), codes);
  *out = std::byte{scale};
}

void EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                          std::byte* out) {
  std::byte* const codes = out + 1;
  uint8_t scale = kSmallestScaleByte;
  size_t grown_at = 0;
  std::vector<uint8_t> scales;  // of each block
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
    // Adds what was sent to what was lost. That is v again, but for the sign of a zero: a code is
    // within half of its last place, so neither the difference nor this sum was rounded.
    const auto block = residual.subspan(first, n);
    const float unit = UnitOfScaleByte(scales[first / kBlockValues]);
    kernels::DecodeAdd<Format>(codes + first, unit, 1.0f, block);
    kernels::EncodeFeedback<Format>(std::span(kZeros).first(n), block, UnitOfScaleByte(scale),
                                    codes + first);
  });
  *out = std::byte{scale};
}

}  // namespace thinwire
