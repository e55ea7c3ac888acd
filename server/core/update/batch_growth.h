// BatchGrowth decides when a job with `schedule: noise_scale` doubles the batch B, the number of
// examples in an update. It compares B with the noise scale S / |G|^2 (gradient_noise.h): up to
// about the noise scale, twice the batch needs fewer updates and not many more examples (McCandlish
// et al. 2018, arXiv 1812.06162, section 2).
//
//   B doubles if   2 B <= largest_batch   and   2 B ratio |G|^2 <= S
//                  after each of kRounds measured rounds in succession
//
// B never becomes smaller. The learning rate stays: a growing batch reduces the noise of SGD as a
// falling rate does (Smith et al. 2018, arXiv 1711.00489). Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_UPDATE_BATCH_GROWTH_H_
#define THINWIRE_SERVER_CORE_UPDATE_BATCH_GROWTH_H_

#include <cstdint>

#include "common/spec/schedule_spec.h"
#include "server/core/update/gradient_noise.h"

namespace thinwire {

class BatchGrowth {
 public:
  static constexpr uint64_t kRounds = 3;

  // With a SPEC.largest_batch of 0, no batch grows.
  explicit BatchGrowth(const GrowthSpec& spec) : spec_(spec) {}

  // Returns whether BATCH, the examples of an update, doubles now. NOISE has the sums over shards.
  // Call it after every measured round, or less often.
  bool Doubles(const NoiseEstimate& noise, uint64_t batch);

 private:
  const GrowthSpec spec_;
  uint64_t batch_ = 0;         // of the last call
  uint64_t failed_round_ = 0;  // the last round after which the batch was new or large enough
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_BATCH_GROWTH_H_
