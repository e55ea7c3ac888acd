#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/codec/codebook/codebook_formats.h"
#include "kernels/pack_bits.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

uint32_t GroupOf(const CodebookHead& head) {
  uint32_t group = 0;
  std::memcpy(&group, head.data(), sizeof(group));
  return group;
}

float Mean(double sum, size_t count) {
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

// The formats of onebit and onebit_sign. The code of a value is its sign bit, so -0 counts as
// negative.
class OneBit : public CodebookFormat {
 public:
  constexpr OneBit(CodecId id, CodebookFit fit, size_t number_count)
      : CodebookFormat(id, fit, {.head_bytes = 4, .bits = 1, .number_count = number_count}) {}

  absl::StatusOr<CodebookShape> Shape(const CodebookHead& head) const final {
    CodebookShape shape = fixed_shape();
    shape.group = GroupOf(head);
    if (shape.group % kernels::kCodesInUnit == 0) return shape;
    return absl::InvalidArgumentError(absl::StrCat(
        "bad group (expected a multiple of ", kernels::kCodesInUnit, ", got ", shape.group, ")"));
  }

  void Fit(std::span<const float> values, CodebookHead&, std::span<float> numbers) const final {
    SetNumbers(kernels::SumBySign(values), values.size(), numbers);
  }

  void AddAndFit(std::span<const float> gradient, std::span<float> values, CodebookHead&,
                 std::span<float> numbers) const final {
    SetNumbers(kernels::AddAndSumBySign(gradient, values), values.size(), numbers);
  }

 protected:
  ~OneBit() = default;

 private:
  virtual void SetNumbers(const kernels::SignSums& sums, size_t count,
                          std::span<float> numbers) const = 0;
};

class OneBitMeans final : public OneBit {
 public:
  constexpr OneBitMeans() : OneBit(CodecId::kOneBit, CodebookFit::kMeansBySign, 2) {}

  void FillTable(const CodebookHead&, std::span<const float> numbers, float scale,
                 std::span<float> table) const override {
    table[0] = scale * numbers[0];
    table[1] = scale * numbers[1];
  }

 private:
  void SetNumbers(const kernels::SignSums& sums, size_t count,
                  std::span<float> numbers) const override {
    numbers[0] = Mean(sums.positive, count - sums.negative_count);
    numbers[1] = Mean(sums.negative, sums.negative_count);
  }
};

class OneBitSign final : public OneBit {
 public:
  constexpr OneBitSign() : OneBit(CodecId::kOneBitSign, CodebookFit::kMeanMagnitude, 1) {}

 private:
  void SetNumbers(const kernels::SignSums& sums, size_t count,
                  std::span<float> numbers) const override {
    numbers[0] = Mean(sums.positive - sums.negative, count);
  }
};

}  // namespace

const CodebookFormat& OneBitFormat() {
  static constexpr OneBitMeans kFormat;
  return kFormat;
}

const CodebookFormat& OneBitSignFormat() {
  static constexpr OneBitSign kFormat;
  return kFormat;
}

CodebookSettings OneBitSettings(uint32_t group) {
  CodebookSettings settings;
  std::memcpy(settings.head.data(), &group, sizeof(group));
  return settings;
}

}  // namespace thinwire
