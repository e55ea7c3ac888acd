#include <algorithm>
#include <bit>
#include <cmath>

#include "common/codec/codebook/codebook_formats.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

// The fit ignores magnitudes below this fraction of the largest magnitude.
constexpr float kSmallestPart = 1.0f / 256;

// Returns ratio^8.
float EighthPower(float ratio) {
  const float fourth = ratio * ratio * (ratio * ratio);
  return fourth * fourth;
}

float RatioOf(int reduction) { return 1.0f - static_cast<float>(reduction) / 256.0f; }

class Log4 final : public CodebookFormat {
 public:
  constexpr Log4()
      : CodebookFormat(CodecId::kLog4, CodebookFit::kRatios,
                       {.head_bytes = 3, .bits = 4, .number_count = 0}) {}

  void FillTable(const CodebookHead& head, std::span<const float>, float scale,
                 std::span<float> table) const override {
    const float ratio = RatioOf(std::to_integer<int>(head[2]));
    const uint32_t upper_half =
        std::to_integer<uint32_t>(head[0]) | std::to_integer<uint32_t>(head[1]) << 8;
    const float largest = std::bit_cast<float>(upper_half << 16);
    const auto magnitude = [&](size_t code) {
      float value = largest;
      for (size_t i = code; i < 7; ++i) value *= ratio;
      return value;
    };
    FillSignedTable(magnitude, scale, table);
  }

  // Divides the range from the largest to the smallest magnitude into eight intervals. The lower
  // end of each interval is the upper end times a ratio, which is equal for all intervals: the
  // ratio nearest to 1 with which eight intervals cover the range. Each table entry is the
  // geometric mean of the ends of its interval.
  void Fit(std::span<const float> values, CodebookHead& head, std::span<float>) const override {
    const float largest = kernels::LargestMagnitude(values);
    float smallest = largest;
    for (const float value : values) {
      const float magnitude = std::abs(value);
      if (magnitude > 0) smallest = std::min(smallest, magnitude);
    }
    smallest = std::max(smallest, largest * kSmallestPart);
    int reduction = 0;  // the ratio is 1 - reduction / 256
    float ratio = 1.0f;
    while (reduction < 255 && largest * EighthPower(ratio) > smallest) {
      ratio = RatioOf(++reduction);
    }
    uint32_t bits = std::bit_cast<uint32_t>(largest * std::sqrt(ratio));
    // Rounds the float to its upper 16 bits, never up to infinity.
    if (bits < 0x7F7F8000) bits += 0x8000;
    head[0] = static_cast<std::byte>(bits >> 16);
    head[1] = static_cast<std::byte>(bits >> 24);
    head[2] = static_cast<std::byte>(reduction);
  }
};

}  // namespace

const CodebookFormat& Log4Format() {
  static constexpr Log4 kFormat;
  return kFormat;
}

}  // namespace thinwire
