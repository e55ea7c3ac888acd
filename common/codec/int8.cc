#include <algorithm>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"

namespace thinwire {
namespace {

constexpr float kLargestCode = 255.0f;

class Int8Codec final : public CodebookCodec {
 public:
  Int8Codec() : CodebookCodec(CodecId::kInt8, {}) {}

 private:
  // The range has 0 in it, which is a code then: what is exactly 0 stays so.
  void Fit(std::span<const float> values, Codebook::Head& head,
           std::span<float> numbers) const override {
    float least = 0, most = 0;
    for (const float value : values) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const float step = most / kLargestCode - least / kLargestCode;
    const float zero = step > 0 ? std::clamp(-least / step + 0.5f, 0.0f, kLargestCode) : 0.0f;
    numbers[0] = step;
    head[0] = static_cast<std::byte>(zero);
  }

  void Code(std::span<const float> values, size_t, const Turn&, const Fitted& fitted,
            std::span<uint8_t> codes) const override {
    const float step = fitted.numbers[0];
    const float zero = static_cast<float>(std::to_integer<int>(fitted.head[0])) + 0.5f;
    for (size_t i = 0; i < values.size(); ++i) {
      const float place = step > 0 ? values[i] / step + zero : zero;
      // A NaN is not above 0.
      codes[i] = static_cast<uint8_t>(place > 0 ? std::min(place, kLargestCode) : 0.0f);
    }
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeInt8Codec() { return std::make_unique<Int8Codec>(); }

}  // namespace thinwire
