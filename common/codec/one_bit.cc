#include <cstring>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "kernels/sums.h"

namespace thinwire {
namespace {

class OneBitCodec final : public CodebookCodec {
 public:
  OneBitCodec(CodecId id, const Codebook::Head& head) : CodebookCodec(id, head) {}

 private:
  void Fit(std::span<const float> values, Codebook::Head&,
           std::span<float> numbers) const override {
    // Of either sign; a value whose sign bit is set counts as negative, as its code does.
    const kernels::SignSums sums = kernels::SumBySign(values);
    const auto mean = [](double sum, size_t count) {
      return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
    };
    if (id() == CodecId::kOneBitSign) {
      numbers[0] = mean(sums.positive - sums.negative, values.size());
    } else {
      numbers[0] = mean(sums.positive, values.size() - sums.negative_count);
      numbers[1] = mean(sums.negative, sums.negative_count);
    }
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeOneBitCodec(CodecId id, uint32_t group) {
  Codebook::Head head;
  std::memcpy(head.data(), &group, sizeof(group));
  const absl::StatusOr<Codebook> book = Codebook::Read(id, head);
  if (!book.ok()) return book.status();
  return std::make_unique<OneBitCodec>(id, head);
}

}  // namespace thinwire
