#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/codec/codebook/codebook_formats.h"
#include "kernels/codes.h"
#include "kernels/reductions.h"
#include "kernels/mix_bits.h"

namespace thinwire {
namespace {

constexpr size_t kGroup = 512;
constexpr int kMaxLevels = 127;
constexpr size_t kDrawsInWord = 4;
constexpr size_t kBlock = CodebookFormat::kMaxCodesAtOnce;

int LevelsOf(const CodebookHead& head) { return std::to_integer<int>(head[0]); }

class Qsgd final : public CodebookFormat {
 public:
  constexpr Qsgd()
      : CodebookFormat(CodecId::kQsgd, CodebookFit::kRandomLevels,
                       {.head_bytes = 1, .group = kGroup}) {}

  absl::StatusOr<CodebookShape> Shape(const CodebookHead& head) const override {
    const int levels = LevelsOf(head);
    if (levels < 1 || levels > kMaxLevels) {
      return absl::InvalidArgumentError(
          absl::StrCat("levels out of range (expected 1 to ", kMaxLevels, ", got ", levels, ")"));
    }
    CodebookShape shape = fixed_shape();
    shape.bits = 1 + std::bit_width(static_cast<unsigned>(levels));
    return shape;
  }

  void FillTable(const CodebookHead& head, std::span<const float> numbers, float scale,
                 std::span<float> table) const override {
    const auto levels = static_cast<size_t>(LevelsOf(head));
    const auto magnitude = [&](size_t code) {
      const auto level = static_cast<float>(std::min(code, levels));
      return numbers[0] * (level / static_cast<float>(levels));
    };
    FillSignedTable(magnitude, scale, table);
  }

  void Fit(std::span<const float> values, CodebookHead&, std::span<float> numbers) const override {
    numbers[0] = kernels::LargestMagnitude(values);
  }

  // Rounds each value at random to one of the two nearest levels. The probability of the upper
  // level is proportional to the value's distance from the lower level. The 16 random bits of value
  // i are a part of word i / 4 of the counter-based generator.
  void Code(std::span<const float> values, size_t first, const RandomKeys& keys,
            const FittedTable& fitted, std::span<uint8_t> codes) const override {
    std::array<uint64_t, kBlock / kDrawsInWord> words;
    const size_t word_count = (values.size() + kDrawsInWord - 1) / kDrawsInWord;
    for (size_t i = 0; i < word_count; ++i) {
      words[i] = kernels::MixBits(keys.per_worker + first / kDrawsInWord + i);
    }
    std::array<uint16_t, kBlock> draws;
    std::memcpy(draws.data(), words.data(), word_count * sizeof(uint64_t));
    const int bits = std::bit_width(fitted.table.size()) - 1;
    const auto levels = static_cast<float>(LevelsOf(fitted.head));
    kernels::CodesOfLevels(values, {fitted.numbers[0], levels, bits},
                           std::span(draws).first(values.size()), codes);
  }
};

}  // namespace

const CodebookFormat& QsgdFormat() {
  static constexpr Qsgd kFormat;
  return kFormat;
}

CodebookSettings QsgdSettings(uint32_t levels) {
  // The head stores the number of levels in one byte. Numbers above 255 are stored as 255, which
  // Shape() refuses.
  return {.head = {static_cast<std::byte>(std::min(levels, uint32_t{255}))}};
}

}  // namespace thinwire
