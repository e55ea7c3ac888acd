// Sampler: which examples a worker takes at each step. Every epoch permutes all examples anew from
// (seed, epoch), the same way at every worker; worker w of W takes places w, w + W, w + 2W, ... of
// it, batch by batch:
//
//   permutation of 10, 3 workers, batches of 2      7 2 9 | 0 4 1 | 8 3 5 | 6
//   worker 0   steps [7 0] [8 6]                    steps_per_epoch = ceil(ceil(10 / 3) / 2) = 2
//   worker 1         [2 4] [3]
//   worker 2         [9 1] [5]
//
// So the workers' shares differ by at most one example, together they are the whole set in every
// epoch, and what a worker does at a step depends on nothing that happened before. A share that
// ends early leaves its last batch empty.
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
  // REQUIRES: no option is 0 but worker and seed; worker < workers; example_count < 2^32.
  explicit Sampler(const SamplerOptions& options);

  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  uint64_t epoch(Step step) const { return step.value / steps_per_epoch_; }

  // The examples of STEP, possibly none. Valid until the next call.
  std::span<const uint32_t> Batch(Step step);

 private:
  void Shuffle(uint64_t epoch);

  const SamplerOptions options_;
  const uint64_t steps_per_epoch_;
  std::optional<uint64_t> shuffled_epoch_;
  std::vector<uint32_t> share_;  // this worker's, in the order of the shuffled epoch
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_SAMPLER_H_
