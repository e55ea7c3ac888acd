#include "worker/batches/sampler.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace thinwire {
namespace {

// A pool contains examples of two epochs after a deal at the beginning of an epoch.
constexpr size_t kMostPermutations = 2;

// Shuffles the numbers of all examples (Fisher-Yates) with a random generator of which the C++
// standard specifies every bit. Does not use std::shuffle and the standard distributions, because
// they differ between C++ libraries: workers with different libraries would get different
// permutations.
std::vector<uint32_t> Shuffled(const SamplerOptions& options, uint64_t epoch) {
  const uint32_t seed[] = {static_cast<uint32_t>(options.seed),
                           static_cast<uint32_t>(options.seed >> 32), static_cast<uint32_t>(epoch),
                           static_cast<uint32_t>(epoch >> 32)};
  std::seed_seq sequence(std::begin(seed), std::end(seed));
  std::mt19937_64 random(sequence);
  std::vector<uint32_t> permutation(options.example_count);
  std::iota(permutation.begin(), permutation.end(), 0u);
  for (uint64_t i = permutation.size() - 1; i > 0; --i) {
    // The modulo makes small results more likely than large results. The relative difference is
    // below 2^-32.
    std::swap(permutation[i], permutation[random() % (i + 1)]);
  }
  return permutation;
}

// Returns the number of examples of the largest share. All sites take the same number of steps.
uint64_t LargestShare(const SamplerOptions& options) {
  return (options.example_count + options.share.sites - 1) / options.share.sites;
}

std::vector<uint32_t> ShareOf(std::vector<uint32_t> permutation, const SiteShare& share) {
  if (share.sites == 1) return permutation;
  std::vector<uint32_t> part;
  for (uint64_t i = share.site; i < permutation.size(); i += share.sites) {
    part.push_back(permutation[i]);
  }
  return part;
}

}  // namespace

std::vector<std::span<const uint32_t>> Parts(std::span<const uint32_t> examples, uint64_t size) {
  if (size == 0) return {examples};
  std::vector<std::span<const uint32_t>> parts;
  for (uint64_t begin = 0; begin < examples.size(); begin += size) {
    parts.push_back(examples.subspan(begin, std::min<uint64_t>(size, examples.size() - begin)));
  }
  return parts;
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(options),
      plan_(LargestShare(options), options.batch_size, options.workers, options.batch_count,
            options.epochs) {}

std::span<const uint32_t> Sampler::Batch(Step step) { return BatchOf(options_.worker, step); }

std::span<const uint32_t> Sampler::MembersBatch(Step step) {
  const std::vector<WorkerId>& members = plan_.MembersAt(step);
  const bool is_member = std::ranges::binary_search(members, options_.worker);
  return BatchOf(is_member ? options_.worker : members.front(), step);
}

std::span<const uint32_t> Sampler::BatchOf(WorkerId worker, Step step) {
  batch_.clear();
  for (const DealtExample& example : plan_.Batch(worker, step)) {
    const std::vector<uint32_t>& permutation = Permutation(example.epoch);
    // The share of this site may be one example smaller than the largest one.
    if (example.position < permutation.size()) batch_.push_back(permutation[example.position]);
  }
  return batch_;
}

const std::vector<uint32_t>& Sampler::Permutation(uint64_t epoch) {
  const auto found = permutations_.find(epoch);
  if (found != permutations_.end()) return found->second;
  if (permutations_.size() >= kMostPermutations) permutations_.erase(permutations_.begin());
  return permutations_[epoch] = ShareOf(Shuffled(options_, epoch), options_.share);
}

uint64_t Sampler::RandomSeedOf(WorkerId worker, Step step, uint32_t local_step) const {
  const uint32_t parts[] = {
      static_cast<uint32_t>(options_.seed), static_cast<uint32_t>(options_.seed >> 32),
      worker.value * options_.share.sites + options_.share.site, static_cast<uint32_t>(step.value),
      static_cast<uint32_t>(step.value >> 32)};
  std::seed_seq sequence(std::begin(parts), std::end(parts));
  uint32_t hash[2];
  sequence.generate(std::begin(hash), std::end(hash));
  return (uint64_t{hash[0]} << 32 | hash[1]) + local_step;
}

}  // namespace thinwire
