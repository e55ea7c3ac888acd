// LossScale: the factor that a worker's loss is multiplied by, moved by what becomes of its steps
// (dynamic loss scaling; proto/loss_scaling.h says where it begins and what it is for).
//
//   after                                        scale                       good steps
//   a step whose gradient was finite             as it was                   one more
//   the INTERVAL-th of those in a row            doubled, at most LARGEST    0
//   a step with a value that was not finite      halved, at least 1          0
//
// It is always a power of two, so that taking it out of a gradient loses nothing. What is not
// finite at 1 is the model's doing or the data's: below 1 the gradients would only vanish.
#ifndef THINWIRE_WORKER_LOSS_SCALE_H_
#define THINWIRE_WORKER_LOSS_SCALE_H_

#include <cstdint>

#include "proto/loss_scaling.h"

namespace thinwire {

// Not thread-safe.
class LossScale {
 public:
  // What outlives the process (loss_scale_file.h).
  struct State {
    float value = 1;
    uint64_t good_steps = 0;  // in a row

    bool operator==(const State&) const = default;
  };

  // REQUIRES: scaling.first and scaling.largest are powers of two, 1 <= first <= largest.
  explicit LossScale(const LossScaling& scaling)
      : scaling_(scaling), state_{.value = scaling.first} {}

  float value() const { return state_.value; }
  const State& state() const { return state_; }
  // Steps that overflowed, of this process.
  uint64_t overflow_count() const { return overflow_count_; }

  // After a step with a gradient.
  void Good();
  void Overflowed();

  // Goes on from what state() was, within the bounds. REQUIRES: a power of two of at least 1.
  void Restore(const State& state);

 private:
  LossScaling scaling_;
  State state_;
  uint64_t overflow_count_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_LOSS_SCALE_H_
