#include "kernels/select/top_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>

#include "kernels/select/kth_largest.h"

namespace thinwire::kernels {
namespace {

// GuessFromSample() estimates a threshold from a sample of the array: evenly spaced groups of
// adjacent values. Each group fills one cache line.
constexpr size_t kRunValues = 16;
constexpr size_t kSampleRuns = 256;
constexpr size_t kSampleValues = kRunValues * kSampleRuns;

// Minimum array size for sampling. Sampling a smaller array saves no time.
constexpr size_t kSampledFrom = 4 * kSampleValues;

// A guessed threshold for the candidates, and the capacity of the candidate array.
struct Guess {
  uint32_t smallest = 1;
  size_t room = 0;
};

Guess GuessFromLast(uint32_t threshold, size_t count, size_t k) {
  return {.smallest = std::min(threshold, 0x7FFFFFFFu), .room = CandidateCapacity(count, k)};
}

// Estimates the threshold from a sample. A threshold that is too high requires another pass, which
// takes more time than superfluous candidates. The estimate is therefore deliberately low. The
// sample is expected to contain m = k * (sample size) / (array size) of the k largest values, with
// a standard deviation of sqrt(m). The estimate is the sample's magnitude of rank m + 3 sqrt(m) +
// 4. VALUE(i) returns the value at index i.
template <typename Value>
Guess GuessFromSample(size_t count, size_t k, const Value& value) {
  if (count < kSampledFrom) return {.smallest = 1, .room = count};
  const double expected = static_cast<double>(k) * kSampleValues / static_cast<double>(count);
  const double rank = std::ceil(expected + 3 * std::sqrt(expected) + 4);
  if (rank >= kSampleValues / 2.0) return {.smallest = 1, .room = count};
  std::array<float, kSampleValues> sample;
  for (size_t run = 0; run < kSampleRuns; ++run) {
    const size_t first = (count - kRunValues) * run / (kSampleRuns - 1);
    for (size_t i = 0; i < kRunValues; ++i) sample[run * kRunValues + i] = value(first + i);
  }
  const uint32_t kth = KthLargest(sample, static_cast<size_t>(rank)).bits;
  const size_t collected = static_cast<size_t>(rank) * count / kSampleValues;
  return {.smallest = std::max(kth, 1u), .room = std::min(count, 2 * collected + 1024)};
}

// Copies the k = top.indices.size() largest of the first COUNT values of FOUND to TOP and returns
// the smallest magnitude copied. Overwrites FOUND. REQUIRES: FOUND has kCollectPadding extra
// elements, ascending indices and magnitudes of at least SMALLEST; 0 < top.indices.size() <= count.
uint32_t KeepLargest(const IndexedValues& found, size_t count, uint32_t smallest,
                     const IndexedValues& top) {
  const size_t k = top.indices.size();
  const KthMagnitude kth = KthLargest(found.values.first(count), k, smallest);
  const size_t kept = CollectAtLeast(found.First(count), kth.bits, found).value();
  // Among the magnitudes equal to the k-th largest magnitude, the loop keeps those with the lowest
  // indices.
  size_t surplus = kept - k;
  for (size_t from = kept, to = k; to > 0;) {
    --from;
    if (surplus > 0 && MagnitudeBits(found.values[from]) == kth.bits) {
      --surplus;
      continue;
    }
    --to;
    top.indices[to] = found.indices[from];
    top.values[to] = found.values[from];
  }
  return kth.bits;
}

// Collects candidates with COLLECT and selects among them. Returns false and leaves TOP unchanged
// if the threshold of GUESS yields fewer than k candidates or more than the candidate array can
// store.
template <typename Collect>
bool SelectByGuess(const Guess& guess, const IndexedValues& top, uint32_t& threshold,
                   const Collect& collect) {
  const size_t size = guess.room + kCollectPadding;
  const auto indices = std::make_unique_for_overwrite<uint32_t[]>(size);
  const auto values = std::make_unique_for_overwrite<float[]>(size);
  const IndexedValues found{{indices.get(), size}, {values.get(), size}};
  const std::optional<size_t> count = collect(guess.smallest, found);
  if (top.indices.empty()) return true;
  if (!count.has_value() || *count < top.indices.size()) return false;
  const uint32_t kth = KeepLargest(found, *count, guess.smallest, top);
  threshold = NextThreshold(guess.smallest, *count, kth, top.indices.size());
  return true;
}

// Selects without a predicted threshold. Used if there was no previous selection, or if the
// threshold that it predicted yielded too few or too many candidates.
void SelectAfresh(std::span<const float> values, const IndexedValues& top, uint32_t& threshold) {
  const size_t k = top.indices.size();
  const auto collect = [&](uint32_t smallest, const IndexedValues& found) {
    return CollectAtLeast(values, smallest, found);
  };
  const Guess sampled = GuessFromSample(values.size(), k, [&](size_t i) { return values[i]; });
  if (SelectByGuess(sampled, top, threshold, collect)) return;
  const Guess exact{.smallest = KthLargest(values, k).bits, .room = values.size()};
  SelectByGuess(exact, top, threshold, collect);
}

}  // namespace

void SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t& threshold) {
  const auto collect = [&](uint32_t smallest, const IndexedValues& found) {
    return CollectAtLeast(values, smallest, found);
  };
  if (threshold != 0) {
    const Guess last = GuessFromLast(threshold, values.size(), top.indices.size());
    if (SelectByGuess(last, top, threshold, collect)) return;
  }
  SelectAfresh(values, top, threshold);
}

void AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                      const IndexedValues& top, uint32_t& threshold) {
  const auto collect = [&](uint32_t smallest, const IndexedValues& found) {
    return AddAndCollectAtLeast(gradient, values, smallest, found);
  };
  const auto sum_at = [&](size_t i) { return values[i] + gradient[i]; };
  const size_t k = top.indices.size();
  const Guess guess = threshold != 0 ? GuessFromLast(threshold, values.size(), k)
                                     : GuessFromSample(values.size(), k, sum_at);
  if (!SelectByGuess(guess, top, threshold, collect)) SelectAfresh(values, top, threshold);
}

}  // namespace thinwire::kernels
