// A run of plain gradient descent on the toy quadratic with one exchange, and what it says of the
// exchange. A pure function of its settings.
#ifndef THINWIRE_EXPERIMENTS_TOY_RUN_H_
#define THINWIRE_EXPERIMENTS_TOY_RUN_H_

#include <cstddef>
#include <cstdint>

#include "experiments/exchange.h"

namespace thinwire {

struct ToySettings {
  size_t value_count = 1000;
  size_t worker_count = 32;
  double sigma = 0;
  double rate = 0.01;
  size_t step_count = 1000;
  uint64_t seed = 1;
};

struct ToyOutcome {
  double loss = 0;  // in the end
  double leak = 0;  // of the magnitudes selected, the part that was lost, on average over the steps
  // given - applied - owed, over given: the sums of their magnitudes, in the end
  double missing = 0;
};

ToyOutcome RunToy(const ToySettings& settings, Exchange& exchange);

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_TOY_RUN_H_
