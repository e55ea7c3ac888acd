#include "kernels/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/collect.h"
#include "kernels/radix_select.h"

namespace thinwire::kernels {
namespace {

// The sample: runs of a cache line's values, evenly spread.
constexpr size_t kRunValues = 16;
constexpr size_t kSampleRuns = 256;
constexpr size_t kSampleValues = kRunValues * kSampleRuns;

// Below this many values a sample saves nothing.
constexpr size_t kSampledFrom = 4 * kSampleValues;

// A magnitude to collect from, and how many values to make room for.
struct Guess {
  uint32_t smallest = 1;
  size_t room = 0;
};

// A guess that is too high costs more than one that collects some values too many, so it is three
// standard deviations of the sample's count low. MAGNITUDE gives that of the value at an index.
template <typename Magnitude>
Guess GuessFromSample(size_t count, size_t k, const Magnitude& magnitude) {
  if (count < kSampledFrom) return {.smallest = 1, .room = count};
  std::vector<uint32_t> sample;
  sample.reserve(kSampleValues);
  for (size_t run = 0; run < kSampleRuns; ++run) {
    const size_t first = (count - kRunValues) * run / (kSampleRuns - 1);
    for (size_t i = first; i < first + kRunValues; ++i) sample.push_back(magnitude(i));
  }
  const double expected = static_cast<double>(k) * kSampleValues / static_cast<double>(count);
  const double rank = std::ceil(expected + 3 * std::sqrt(expected) + 4);
  if (rank >= kSampleValues / 2.0) return {.smallest = 1, .room = count};
  const uint32_t kth = KthLargest(sample, static_cast<size_t>(rank)).value;
  const size_t collected = static_cast<size_t>(rank) * count / kSampleValues;
  return {.smallest = std::max(kth, 1u), .room = std::min(count, 2 * collected + 1024)};
}

// Leaves of CANDIDATES, which are rising and hold all of the largest, the k largest of VALUES.
void KeepLargest(std::span<const float> values, std::span<const uint32_t> candidates,
                 std::span<uint32_t> indices) {
  std::vector<uint32_t> magnitudes(candidates.size());
  std::ranges::transform(candidates, magnitudes.begin(),
                         [&](uint32_t i) { return MagnitudeBits(values[i]); });
  std::vector<uint32_t> scratch = magnitudes;
  const KthValue kth = KthLargest(scratch, indices.size());
  size_t ties_left = indices.size() - kth.above_count;
  size_t kept = 0;
  for (size_t j = 0; j < candidates.size(); ++j) {
    if (magnitudes[j] < kth.value) continue;
    if (magnitudes[j] == kth.value) {
      if (ties_left == 0) continue;
      --ties_left;
    }
    indices[kept++] = candidates[j];
  }
}

// For when the guess failed: the exact magnitude, and all that reach it.
void SelectByFullScan(std::span<const float> values, std::span<uint32_t> indices) {
  std::vector<uint32_t> magnitudes(values.size());
  std::ranges::transform(values, magnitudes.begin(), MagnitudeBits);
  const KthValue kth = KthLargest(magnitudes, indices.size());
  magnitudes.resize(values.size() + kCollectPadding);
  const std::optional<size_t> count = CollectAtLeast(values, kth.value, magnitudes);
  KeepLargest(values, std::span(magnitudes).first(*count), indices);
}

// COLLECT runs the one pass, over values that are final after it.
template <typename Collect>
void Select(std::span<const float> values, const Guess& guess, std::span<uint32_t> indices,
            const Collect& collect) {
  std::vector<uint32_t> candidates(guess.room + kCollectPadding);
  const std::optional<size_t> count = collect(guess.smallest, std::span(candidates));
  if (indices.empty()) return;
  if (!count.has_value() || *count < indices.size()) return SelectByFullScan(values, indices);
  KeepLargest(values, std::span(candidates).first(*count), indices);
}

}  // namespace

void SelectTopK(std::span<const float> values, std::span<uint32_t> indices) {
  const Guess guess = GuessFromSample(values.size(), indices.size(),
                                      [&](size_t i) { return MagnitudeBits(values[i]); });
  Select(values, guess, indices, [&](uint32_t smallest, std::span<uint32_t> candidates) {
    return CollectAtLeast(values, smallest, candidates);
  });
}

void AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                      std::span<uint32_t> indices) {
  const Guess guess = GuessFromSample(values.size(), indices.size(), [&](size_t i) {
    return MagnitudeBits(values[i] + gradient[i]);
  });
  Select(values, guess, indices, [&](uint32_t smallest, std::span<uint32_t> candidates) {
    return AddAndCollectAtLeast(gradient, values, smallest, candidates);
  });
}

}  // namespace thinwire::kernels
