#include "common/codec/codebook/fitted_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "common/codec/codebook/codebook_formats.h"
#include "kernels/mix_bits.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

// Sorts magnitudes, given as the bits of floats, by a radix sort with one pass per byte.
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

// Splits VALUES into COUNT nearly equal parts, draws one magnitude at random from each part, and
// returns the magnitudes in ascending order.
std::vector<float> SortedSample(std::span<const float> values, size_t count) {
  std::vector<uint32_t> bits(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * values.size() / count, end = (i + 1) * values.size() / count;
    const float value = values[begin + kernels::MixBits(i) % (end - begin)];
    bits[i] = std::bit_cast<uint32_t>(value) & 0x7FFFFFFF;
  }
  SortMagnitudes(bits);
  std::vector<float> sample(count);
  std::ranges::transform(bits, sample.begin(), [](uint32_t b) { return std::bit_cast<float>(b); });
  return sample;
}

// Returns a quantile of the ascending array SORTED: 0.5 as PART gives the median. Interpolates
// linearly between elements. REQUIRES: 0 <= part <= 1.
float Percentile(std::span<const float> sorted, double part) {
  const double position = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return static_cast<float>((1 - fraction) * sorted[below] + fraction * sorted[above]);
}

// Runs one iteration of Lloyd's algorithm (Lloyd 1982): replaces each table entry by the mean of
// the samples that are nearer to it than to any other entry. SORTED contains the samples in
// ascending order.
void Refine(std::span<const float> sorted, std::span<float> entries) {
  auto begin = sorted.begin();
  for (size_t e = 0; e < entries.size(); ++e) {
    // Lloyd's algorithm computes the boundary between two entries from their values before this
    // iteration. Here entries[e] and entries[e + 1] still have these values.
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

// Sets NUMBERS to percentiles of a sample of VALUES, and returns the sample.
std::vector<float> FitPercentiles(std::span<const float> values, std::span<float> numbers) {
  std::vector<float> sample = SortedSample(values, TableSampleCount(values.size(), numbers.size()));
  for (size_t j = 0; j < numbers.size(); ++j) {
    numbers[j] =
        Percentile(sample, 0.99 * static_cast<double>(j + 1) / static_cast<double>(numbers.size()));
  }
  return sample;
}

constexpr CodecId IdOf(CodecId one_bit, int bits) {
  return static_cast<CodecId>(static_cast<int>(one_bit) + bits - 1);
}

constexpr CodebookShape ShapeOf(int bits) {
  return {.bits = bits, .number_count = size_t{1} << (bits - 1)};
}

class PercentileTable final : public CodebookFormat {
 public:
  constexpr explicit PercentileTable(int bits)
      : CodebookFormat(IdOf(CodecId::kTable1, bits), CodebookFit::kPercentiles, ShapeOf(bits)) {}

  void Fit(std::span<const float> values, CodebookHead&, std::span<float> numbers) const override {
    FitPercentiles(values, numbers);
  }
};

class LloydTable final : public CodebookFormat {
 public:
  constexpr explicit LloydTable(int bits)
      : CodebookFormat(IdOf(CodecId::kLloyd1, bits), CodebookFit::kLloyd, ShapeOf(bits)) {}

  void Fit(std::span<const float> values, CodebookHead&, std::span<float> numbers) const override {
    const std::vector<float> sample = FitPercentiles(values, numbers);
    for (int i = 0; i < kLloydIterations; ++i) Refine(sample, numbers);
  }
};

// The format of lloyd_1. For a table of one magnitude, Lloyd's algorithm gives the mean magnitude,
// which is computed from all values instead of a sample.
class MeanTable final : public CodebookFormat {
 public:
  constexpr MeanTable()
      : CodebookFormat(CodecId::kLloyd1, CodebookFit::kMeanMagnitude, ShapeOf(1)) {}

  void Fit(std::span<const float> values, CodebookHead&, std::span<float> numbers) const override {
    const kernels::SignSums sums = kernels::SumBySign(values);
    numbers[0] =
        static_cast<float>((sums.positive - sums.negative) / static_cast<double>(values.size()));
  }
};

}  // namespace

const CodebookFormat& TableFormat(int bits) {
  static constexpr PercentileTable kFormats[] = {
      PercentileTable(1), PercentileTable(2), PercentileTable(3), PercentileTable(4),
      PercentileTable(5), PercentileTable(6), PercentileTable(7), PercentileTable(8)};
  return kFormats[bits - 1];
}

const CodebookFormat& LloydFormat(int bits) {
  static constexpr MeanTable kMean;
  static constexpr LloydTable kFormats[] = {LloydTable(2), LloydTable(3), LloydTable(4),
                                            LloydTable(5), LloydTable(6), LloydTable(7),
                                            LloydTable(8)};
  if (bits == 1) return kMean;
  return kFormats[bits - 2];
}

}  // namespace thinwire
