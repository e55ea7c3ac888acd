#include <algorithm>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "kernels/codes.h"
#include "kernels/reductions.h"

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
    SetNumbers(kernels::RangeWithZero(values), head, numbers);
  }

  void AddAndFit(std::span<const float> gradient, std::span<float> values, Codebook::Head& head,
                 std::span<float> numbers) const override {
    SetNumbers(kernels::AddAndRangeWithZero(gradient, values), head, numbers);
  }

  static void SetNumbers(const kernels::Range& range, Codebook::Head& head,
                         std::span<float> numbers) {
    const auto [least, most] = range;
    const float step = most / kLargestCode - least / kLargestCode;
    const float zero = step > 0 ? std::clamp(-least / step + 0.5f, 0.0f, kLargestCode) : 0.0f;
    numbers[0] = step;
    head[0] = static_cast<std::byte>(zero);
  }

  void Code(std::span<const float> values, size_t, const Turn&, const Fitted& fitted,
            std::span<uint8_t> codes) const override {
    const auto zero = std::to_integer<uint8_t>(fitted.head[0]);
    if (fitted.numbers[0] > 0) {
      kernels::CodesOfSteps(values, fitted.numbers[0], zero, codes);
    } else {
      std::ranges::fill(codes, zero);
    }
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeInt8Codec() { return std::make_unique<Int8Codec>(); }

}  // namespace thinwire
