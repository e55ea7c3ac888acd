#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "common/codec/codebook_codec.h"
#include "common/codec/codebook_codecs.h"
#include "common/codec/table_fit.h"
#include "common/mix_bits.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

// Rising, by their bits: one pass for each of a float's bytes.
void SortMagnitudes(std::vector<uint32_t>& magnitudes) {
  std::vector<uint32_t> other(magnitudes.size());
  for (int shift = 0; shift < 32; shift += 8) {
    std::array<size_t, 257> begins = {};
    for (const uint32_t bits : magnitudes) ++begins[(bits >> shift & 0xFF) + 1];
    for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    for (const uint32_t bits : magnitudes) other[begins[bits >> shift & 0xFF]++] = bits;
    magnitudes.swap(other);
  }
}

// COUNT magnitudes of VALUES, rising: of each of as many equal parts one that is drawn.
std::vector<float> SortedSample(std::span<const float> values, size_t count) {
  std::vector<uint32_t> bits(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * values.size() / count, end = (i + 1) * values.size() / count;
    const float value = values[begin + MixBits(i) % (end - begin)];
    bits[i] = std::bit_cast<uint32_t>(value) & 0x7FFFFFFF;
  }
  SortMagnitudes(bits);
  std::vector<float> sample(count);
  std::ranges::transform(bits, sample.begin(), [](uint32_t b) { return std::bit_cast<float>(b); });
  return sample;
}

// Of SORTED at PART of its length, between the nearest two in proportion.
float Percentile(std::span<const float> sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = place - static_cast<double>(below);
  return static_cast<float>((1 - share) * sorted[below] + share * sorted[above]);
}

// Each entry becomes the mean of the samples that are nearest to it. (Lloyd 1982.)
void Refine(std::span<const float> sorted, std::span<float> entries) {
  auto begin = sorted.begin();
  for (size_t e = 0; e < entries.size(); ++e) {
    // The next entry is still as it was, and this one is not needed again.
    auto end = sorted.end();
    if (e + 1 < entries.size()) {
      const float middle = 0.5f * entries[e] + 0.5f * entries[e + 1];
      end = std::lower_bound(begin, sorted.end(), middle);
    }
    double sum = 0;
    for (auto sample = begin; sample != end; ++sample) sum += *sample;
    if (end != begin) entries[e] = static_cast<float>(sum / static_cast<double>(end - begin));
    begin = end;
  }
}

class TableCodec final : public CodebookCodec {
 public:
  explicit TableCodec(CodecId id) : CodebookCodec(id, {}) {}

 private:
  void Fit(std::span<const float> values, Codebook::Head&,
           std::span<float> numbers) const override {
    if (id() == CodecId::kLloyd1) {
      const kernels::SignSums sums = kernels::SumBySign(values);
      numbers[0] =
          static_cast<float>((sums.positive - sums.negative) / static_cast<double>(values.size()));
      return;
    }
    const std::vector<float> sample =
        SortedSample(values, TableSampleCount(values.size(), numbers.size()));
    for (size_t j = 0; j < numbers.size(); ++j) {
      numbers[j] = Percentile(
          sample, 0.99 * static_cast<double>(j + 1) / static_cast<double>(numbers.size()));
    }
    if (id() < CodecId::kLloyd1) return;
    for (int i = 0; i < kLloydIterations; ++i) Refine(sample, numbers);
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeTableCodec(CodecId id) { return std::make_unique<TableCodec>(id); }

}  // namespace thinwire
