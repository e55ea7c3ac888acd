#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

class OneBitCodec final : public CodebookCodec {
 public:
  OneBitCodec(CodecId id, const Codebook::Head& head) : CodebookCodec(id, head) {}

 private:
  void Fit(std::span<const float> values, Codebook::Head&,
           std::span<float> numbers) const override {
    SetNumbers(kernels::SumBySign(values), values.size(), numbers);
  }

  void AddAndFit(std::span<const float> gradient, std::span<float> values, Codebook::Head&,
                 std::span<float> numbers) const override {
    SetNumbers(kernels::AddAndSumBySign(gradient, values), values.size(), numbers);
  }

  // Of either sign; a value whose sign bit is set counts as negative, as its code does.
  void SetNumbers(const kernels::SignSums& sums, size_t count, std::span<float> numbers) const {
    const auto mean = [](double sum, size_t of) {
      return of == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(of));
    };
    if (id() == CodecId::kOneBitSign) {
      numbers[0] = mean(sums.positive - sums.negative, count);
    } else {
      numbers[0] = mean(sums.positive, count - sums.negative_count);
      numbers[1] = mean(sums.negative, sums.negative_count);
    }
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeOneBitCodec(CodecId id, uint32_t group) {
  const Codebook::Head head = Codebook::HeadOf(id, group);
  const absl::StatusOr<Codebook> book = Codebook::Read(id, head);
  if (!book.ok()) return book.status();
  return std::make_unique<OneBitCodec>(id, head);
}

}  // namespace thinwire
