#include <limits>

#include "absl/strings/str_cat.h"
#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "kernels/codes.h"

namespace thinwire {
namespace {

class TwoBitCodec final : public CodebookCodec {
 public:
  explicit TwoBitCodec(float threshold)
      : CodebookCodec(CodecId::kTwoBit, {}), threshold_(threshold) {}

 private:
  void Fit(std::span<const float>, Codebook::Head&, std::span<float> numbers) const override {
    numbers[0] = threshold_;
  }

  void Code(std::span<const float> values, size_t, const Turn&, const Fitted& fitted,
            std::span<uint8_t> codes) const override {
    kernels::CodesOfMagnitudes(values, fitted.numbers, 2, codes);
  }

  const float threshold_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeTwoBitCodec(double threshold) {
  using Float = std::numeric_limits<float>;
  if (!(threshold >= Float::min() && threshold <= Float::max())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "twobit threshold: want a number above 0 that a float holds, got ", threshold));
  }
  return std::make_unique<TwoBitCodec>(static_cast<float>(threshold));
}

}  // namespace thinwire
