// Sampler distributes the examples of every epoch over the workers. In each epoch every worker
// computes the same permutation of all examples, with a generator seeded by (seed, epoch). The
// deals decide who takes which positions of the permutation (worker/batches/deal_plan.h). Without deals,
// worker w of W uses the positions w, w + W, w + 2W, ... of the permutation, in each step as many
// as the batches of the step have examples.
//
// The workers' shares of an epoch differ by at most one example, and every example is in exactly
// one share. All workers take the same number of steps per epoch. If a worker's share needs one
// step less than the largest share, the worker's last batch of the epoch is empty. A batch depends
// only on the options, the deals and the step, so a restarted worker can continue at the job's
// current step.
#ifndef THINWIRE_WORKER_BATCHES_SAMPLER_H_
#define THINWIRE_WORKER_BATCHES_SAMPLER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "worker/batches/deal_plan.h"

namespace thinwire {

// The examples of a site (docs/sites.md): the positions site, site + sites, ... of each permutation.
// Worker w of the W workers of each of S sites thus has the batches of worker w * S + site of S * W.
struct SiteShare {
  uint32_t site = 0;
  uint32_t sites = 1;  // 1: all examples
};

struct SamplerOptions {
  uint64_t example_count = 0;
  WorkerId worker;
  uint32_t workers = 1;  // of the first deal
  uint32_t batch_size = 1;
  uint32_t batch_count = 1;  // batches in a step, unless a deal changes it
  uint64_t seed = 1;
  SiteShare share;
  uint64_t epochs = std::numeric_limits<uint64_t>::max();  // of the run
};

// Returns EXAMPLES in parts of SIZE examples, in their order. The last part may be smaller. SIZE 0:
// all examples are one part.
std::vector<std::span<const uint32_t>> Parts(std::span<const uint32_t> examples, uint64_t size);

// Not thread-safe.
class Sampler {
 public:
  // REQUIRES: all numbers in OPTIONS are positive; example_count < 2^32. A worker
  // that is not below `workers` has only empty batches until a deal makes it a member.
  explicit Sampler(const SamplerOptions& options);

  // As those of DealPlan.
  void Add(const Deal& deal) { plan_.Add(deal); }
  void ForgetDeals() { plan_.ForgetDeals(); }
  size_t deal_count() const { return plan_.deal_count(); }
  uint64_t epoch(Step step) const { return plan_.epoch(step); }
  Step EpochBegin(uint64_t epoch) const { return plan_.EpochBegin(epoch); }

  // Returns the numbers of the examples in the step's batch. The batch may be empty. The result is
  // valid until the next call of Batch(), MembersBatch() or BatchOf().
  std::span<const uint32_t> Batch(Step step);
  // Returns the batch of this worker, or of the first member if this worker is not a member in the
  // step. A new worker computes its model's buffers from such batches.
  std::span<const uint32_t> MembersBatch(Step step);

  // Returns the batch of another worker, as Batch() of its own sampler does.
  std::span<const uint32_t> BatchOf(WorkerId worker, Step step);

  // Returns the seed of all other random numbers that the worker draws in this local step, the
  // first of which is 0: a hash of (seed, worker, step), plus LOCAL_STEP.
  uint64_t RandomSeed(Step step, uint32_t local_step = 0) const {
    return RandomSeedOf(options_.worker, step, local_step);
  }
  uint64_t RandomSeedOf(WorkerId worker, Step step, uint32_t local_step = 0) const;

 private:
  // Returns the share of the permutation of an epoch.
  const std::vector<uint32_t>& Permutation(uint64_t epoch);

  const SamplerOptions options_;
  DealPlan plan_;
  std::map<uint64_t, std::vector<uint32_t>> permutations_;  // by epoch; the ones used last
  std::vector<uint32_t> batch_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_BATCHES_SAMPLER_H_
