#include "worker/sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace thinwire {
namespace {

uint64_t DivideUp(uint64_t n, uint64_t by) { return n / by + (n % by != 0); }

uint64_t StepsPerEpoch(const SamplerOptions& options) {
  CHECK_GT(options.example_count, 0u);
  CHECK_LE(options.example_count, std::numeric_limits<uint32_t>::max());
  CHECK_GT(options.batch_size, 0u);
  CHECK_LT(options.worker.value, options.workers);
  return DivideUp(DivideUp(options.example_count, options.workers), options.batch_size);
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options)
    : options_(options), steps_per_epoch_(StepsPerEpoch(options)) {}

std::span<const uint32_t> Sampler::Batch(Step step) {
  if (shuffled_epoch_ != epoch(step)) Shuffle(epoch(step));
  const uint64_t begin = step.value % steps_per_epoch_ * options_.batch_size;
  const uint64_t end = begin + options_.batch_size;
  const uint64_t size = share_.size();
  return std::span(share_).subspan(std::min(begin, size),
                                   std::min(end, size) - std::min(begin, size));
}

uint64_t Sampler::RandomSeed(Step step) const {
  const uint32_t parts[] = {static_cast<uint32_t>(options_.seed),
                            static_cast<uint32_t>(options_.seed >> 32), options_.worker.value,
                            static_cast<uint32_t>(step.value),
                            static_cast<uint32_t>(step.value >> 32)};
  std::seed_seq sequence(std::begin(parts), std::end(parts));
  uint32_t hash[2];
  sequence.generate(std::begin(hash), std::end(hash));
  return uint64_t{hash[0]} << 32 | hash[1];
}

// Shuffles the numbers of all examples (Fisher-Yates) with a random generator of which the C++
// standard specifies every bit. Does not use std::shuffle and the standard distributions, because
// they differ between C++ libraries: workers with different libraries would get different
// permutations.
void Sampler::Shuffle(uint64_t epoch) {
  const uint32_t seed[] = {static_cast<uint32_t>(options_.seed),
                           static_cast<uint32_t>(options_.seed >> 32), static_cast<uint32_t>(epoch),
                           static_cast<uint32_t>(epoch >> 32)};
  std::seed_seq sequence(std::begin(seed), std::end(seed));
  std::mt19937_64 random(sequence);
  std::vector<uint32_t> permutation(options_.example_count);
  std::iota(permutation.begin(), permutation.end(), 0u);
  for (uint64_t i = permutation.size() - 1; i > 0; --i) {
    // The modulo makes small results more likely than large results. The relative difference is
    // below 2^-32.
    std::swap(permutation[i], permutation[random() % (i + 1)]);
  }
  share_.clear();
  for (uint64_t i = options_.worker.value; i < permutation.size(); i += options_.workers) {
    share_.push_back(permutation[i]);
  }
  shuffled_epoch_ = epoch;
}

}  // namespace thinwire
