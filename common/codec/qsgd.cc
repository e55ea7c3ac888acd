#include <array>
#include <bit>
#include <cstring>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "common/mix_bits.h"
#include "kernels/codes.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

constexpr size_t kDrawsInWord = 4;
constexpr size_t kBlock = CodebookCodec::kMostAtOnce;

class QsgdCodec final : public CodebookCodec {
 public:
  explicit QsgdCodec(const Codebook::Head& head)
      : CodebookCodec(CodecId::kQsgd, head),
        levels_(static_cast<float>(std::to_integer<int>(head[0]))) {}

 private:
  void Fit(std::span<const float> values, Codebook::Head&,
           std::span<float> numbers) const override {
    numbers[0] = kernels::LargestMagnitude(values);
  }

  // A value between two levels goes to the upper one as often as it is near it. Each value's draw
  // is its own 16 bits of the word that its number has.
  void Code(std::span<const float> values, size_t first, const Turn& turn, const Fitted& fitted,
            std::span<uint8_t> codes) const override {
    std::array<uint64_t, kBlock / kDrawsInWord> words;
    const size_t word_count = (values.size() + kDrawsInWord - 1) / kDrawsInWord;
    for (size_t i = 0; i < word_count; ++i) {
      words[i] = MixBits(turn.own_draw + first / kDrawsInWord + i);
    }
    std::array<uint16_t, kBlock> draws;
    std::memcpy(draws.data(), words.data(), word_count * sizeof(uint64_t));
    const int bits = std::bit_width(fitted.table.size()) - 1;
    kernels::CodesOfLevels(values, {fitted.numbers[0], levels_, bits},
                           std::span(draws).first(values.size()), codes);
  }

  const float levels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeQsgdCodec(uint32_t levels) {
  const Codebook::Head head = Codebook::HeadOf(CodecId::kQsgd, levels);
  const absl::StatusOr<Codebook> book = Codebook::Read(CodecId::kQsgd, head);
  if (!book.ok()) return book.status();
  return std::make_unique<QsgdCodec>(head);
}

}  // namespace thinwire
