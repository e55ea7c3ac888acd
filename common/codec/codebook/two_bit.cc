#include "common/codec/codebook/codebook_formats.h"
#include "kernels/codes.h"

namespace thinwire {
namespace {

class TwoBit final : public CodebookFormat {
 public:
  constexpr TwoBit() : CodebookFormat(CodecId::kTwoBit, CodebookFit::kFixed, {.bits = 2}) {}

  void FillTable(const CodebookHead&, std::span<const float> numbers, float scale,
                 std::span<float> table) const override {
    FillSignedTable([&](size_t code) { return code == 0 ? 0.0f : numbers[0]; }, scale, table);
  }

  // Does nothing, because the only number of a twobit group is the threshold, which is a setting
  // and does not depend on the values.
  void Fit(std::span<const float>, CodebookHead&, std::span<float>) const override {}

  void Code(std::span<const float> values, size_t, const RandomKeys&, const FittedTable& fitted,
            std::span<uint8_t> codes) const override {
    kernels::CodesOfMagnitudes(values, fitted.numbers, 2, codes);
  }
};

}  // namespace

const CodebookFormat& TwoBitFormat() {
  static constexpr TwoBit kFormat;
  return kFormat;
}

CodebookSettings TwoBitSettings(float threshold) { return {.number = threshold}; }

}  // namespace thinwire
