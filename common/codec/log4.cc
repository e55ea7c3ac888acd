#include <algorithm>
#include <bit>
#include <cmath>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

// Below this part of the largest magnitude no smallest one is looked for.
constexpr float kSmallestPart = 1.0f / 256;

class Log4Codec final : public CodebookCodec {
 public:
  Log4Codec() : CodebookCodec(CodecId::kLog4, {}) {}

 private:
  // The largest ratio of which eight reach from the largest magnitude to the smallest; the entries
  // lie in the middle of each.
  void Fit(std::span<const float> values, Codebook::Head& head, std::span<float>) const override {
    const float largest = kernels::LargestMagnitude(values);
    float smallest = largest;
    for (const float value : values) {
      const float magnitude = std::abs(value);
      if (magnitude > 0) smallest = std::min(smallest, magnitude);
    }
    smallest = std::max(smallest, largest * kSmallestPart);
    int reduction = 0;  // 256ths by which the ratio is below 1
    float ratio = 1.0f;
    while (reduction < 255 && largest * Eighth(ratio) > smallest) {
      ratio = 1.0f - static_cast<float>(++reduction) / 256.0f;
    }
    uint32_t bits = std::bit_cast<uint32_t>(largest * std::sqrt(ratio));
    if (bits < 0x7F7F8000) bits += 0x8000;  // rounds, but not to infinity
    head[0] = static_cast<std::byte>(bits >> 16);
    head[1] = static_cast<std::byte>(bits >> 24);
    head[2] = static_cast<std::byte>(reduction);
  }

  static float Eighth(float ratio) {
    const float fourth = ratio * ratio * (ratio * ratio);
    return fourth * fourth;
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeLog4Codec() { return std::make_unique<Log4Codec>(); }

}  // namespace thinwire
