// Sampler distributes the examples of every epoch over the workers. In each epoch every worker
// computes the same permutation of all examples, with a generator seeded by (seed, epoch). Worker w
// of W uses the positions w, w + W, w + 2W, ... of the permutation, `batch_size` of them per step:
//
//   permutation of 10 examples, 3 workers, batches of 2   7 2 9 | 0 4 1 | 8 3 5 | 6
//   worker 0   steps [7 0] [8 6]                          steps_per_epoch = ceil(ceil(10 / 3) / 2) = 2
//   worker 1         [2 4] [3]
//   worker 2         [9 1] [5]
//
// The workers' shares of an epoch differ by at most one example, and every example is in exactly
// one share. All workers take the same number of steps per epoch. If a worker's share needs one
// step less than the largest share, the worker's last batch of the epoch is empty. A batch depends
// only on the options and the step, so a restarted worker can continue at the job's current step.
#ifndef THINWIRE_WORKER_SAMPLER_H_
#define THINWIRE_WORKER_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"

namespace thinwire {

struct SamplerOptions {
  uint64_t example_count = 0;
  WorkerId worker;
  uint32_t workers = 1;
  uint32_t batch_size = 1;
  uint64_t seed = 1;
};

// Not thread-safe.
class Sampler {
 public:
  // REQUIRES: example_count, workers and batch_size are positive; worker < workers;
  // example_count < 2^32.
  explicit Sampler(const SamplerOptions& options);

  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  uint64_t epoch(Step step) const { return step.value / steps_per_epoch_; }

  // Returns the numbers of the examples in the step's batch. The batch may be empty. The result is
  // valid until the next call of Batch().
  std::span<const uint32_t> Batch(Step step);

  // Returns the seed of all other random numbers that the worker draws in this step: a hash of
  // (seed, worker, step).
  uint64_t RandomSeed(Step step) const;

 private:
  void Shuffle(uint64_t epoch);

  const SamplerOptions options_;
  const uint64_t steps_per_epoch_;
  std::optional<uint64_t> shuffled_epoch_;
  std::vector<uint32_t> share_;  // this worker's examples in the epoch shuffled_epoch_
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_SAMPLER_H_
