#include <bit>
#include <cstdint>

#include "common/codec/codebook/codebook_formats.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

// A float with a sign, three exponent bits and no mantissa, which has neither infinity nor NaN.
// Exponent 0 is the value 0, the others are powers of two. The unit is a number of the group, with
// which the largest exponent is the group's largest magnitude: with one unit per shard, a few large
// values would turn most others into 0.
class Fp4E3m0 final : public CodebookFormat {
 public:
  constexpr Fp4E3m0()
      : CodebookFormat(CodecId::kFp4E3m0, CodebookFit::kPowersOfTwo, {.bits = 4, .group = 512}) {}

  void FillTable(const CodebookHead&, std::span<const float> numbers, float scale,
                 std::span<float> table) const override {
    const auto magnitude = [&](size_t code) {
      const auto exponent = static_cast<uint32_t>(120 + code);  // of 2^(code - 7)
      return code == 0 ? 0.0f : numbers[0] * std::bit_cast<float>(exponent << 23);
    };
    FillSignedTable(magnitude, scale, table);
  }

  void Fit(std::span<const float> values, CodebookHead&, std::span<float> numbers) const override {
    numbers[0] = kernels::LargestMagnitude(values);
  }
};

}  // namespace

const CodebookFormat& Fp4E3m0Format() {
  static constexpr Fp4E3m0 kFormat;
  return kFormat;
}

}  // namespace thinwire
