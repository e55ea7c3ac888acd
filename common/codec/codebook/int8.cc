#include <algorithm>
#include <cmath>
#include <limits>

#include "common/codec/codebook/codebook_formats.h"
#include "kernels/codes.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

constexpr float kLargestCode = 255.0f;

class Int8 final : public CodebookFormat {
 public:
  constexpr Int8()
      : CodebookFormat(CodecId::kInt8, CodebookFit::kEvenSteps, {.head_bytes = 1, .bits = 8}) {}

  void FillTable(const CodebookHead& head, std::span<const float> numbers, float scale,
                 std::span<float> table) const override {
    // The product of the step size and (code - zero) exceeds the largest float only for codes that
    // the encoder does not use. Such a product is limited to the largest float, unless the step
    // size is not finite.
    constexpr float kMax = std::numeric_limits<float>::max();
    const auto zero = static_cast<float>(std::to_integer<int>(head[0]));
    for (size_t c = 0; c < table.size(); ++c) {
      const float value = numbers[0] * (static_cast<float>(c) - zero);
      table[c] = scale * (std::isfinite(numbers[0]) ? std::clamp(value, -kMax, kMax) : value);
    }
  }

  // The fitted range of values always includes 0, so one code decodes to exactly 0.
  void Fit(std::span<const float> values, CodebookHead& head,
           std::span<float> numbers) const override {
    SetNumbers(kernels::RangeWithZero(values), head, numbers);
  }

  void AddAndFit(std::span<const float> gradient, std::span<float> values, CodebookHead& head,
                 std::span<float> numbers) const override {
    SetNumbers(kernels::AddAndRangeWithZero(gradient, values), head, numbers);
  }

  void Code(std::span<const float> values, size_t, const RandomKeys&, const FittedTable& fitted,
            std::span<uint8_t> codes) const override {
    const auto zero = std::to_integer<uint8_t>(fitted.head[0]);
    if (fitted.numbers[0] > 0) {
      kernels::CodesOfSteps(values, fitted.numbers[0], zero, codes);
    } else {
      std::ranges::fill(codes, zero);
    }
  }

 private:
  static void SetNumbers(const kernels::Range& range, CodebookHead& head,
                         std::span<float> numbers) {
    const auto [least, most] = range;
    const float step = most / kLargestCode - least / kLargestCode;
    const float zero = step > 0 ? std::clamp(-least / step + 0.5f, 0.0f, kLargestCode) : 0.0f;
    numbers[0] = step;
    head[0] = static_cast<std::byte>(zero);
  }
};

}  // namespace

const CodebookFormat& Int8Format() {
  static constexpr Int8 kFormat;
  return kFormat;
}

}  // namespace thinwire
