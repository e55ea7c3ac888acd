#include <algorithm>
#include <cmath>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "common/mix_bits.h"
#include "kernels/magnitude.h"

namespace thinwire {
namespace {

constexpr size_t kDrawsInWord = 4;

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
    const float largest = fitted.numbers[0];
    const size_t sign = fitted.table.size() / 2;
    uint64_t word = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % kDrawsInWord == 0) word = MixBits(turn.own_draw + (first + i) / kDrawsInWord);
      const float draw = static_cast<float>(word & 0xFFFF) * 0x1p-16f;
      word >>= 16;
      const float place = std::abs(values[i]) / largest * levels_ + draw;
      // 0/0 is not above 0.
      const float level = place > 0 ? std::min(std::floor(place), levels_) : 0.0f;
      codes[i] =
          static_cast<uint8_t>(static_cast<size_t>(level) + (std::signbit(values[i]) ? sign : 0));
    }
  }

  const float levels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeQsgdCodec(uint32_t levels) {
  const Codebook::Head head = {static_cast<std::byte>(std::min(levels, uint32_t{255}))};
  const absl::StatusOr<Codebook> book = Codebook::Read(CodecId::kQsgd, head);
  if (!book.ok()) return book.status();
  return std::make_unique<QsgdCodec>(head);
}

}  // namespace thinwire
