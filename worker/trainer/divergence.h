// DivergenceWatch decides from the steps of one worker whether its run has diverged.
//
//   symptom                                                            noticed at
//   the loss of a step is not finite                                   that step
//   every step of an epoch had a gradient that is not finite           the epoch's end
//   the loss did not fall: the mean of the last 100 steps is           the epoch's end, after at
//     at least 99 % of the guessing loss and 90 % of the first loss      least 110 steps
//   the loss grew: the mean of the last 100 steps, or of all except     the epoch's end
//     the first one, is above ten times the loss of the first step
//     and ten times the guessing loss
//
// The first loss is the smallest loss of the first ten steps. The guessing loss is the loss of a
// model that ignores its input and knows only how often each class occurs. A task without classes
// (loss: script) has none: the loss then grew if it is above a hundred times that of the first step,
// and it need not fall. The compared steps are
// disjoint, so a loss that only falls has not grown. Except for the first, a symptom of an epoch is
// forgotten when a later epoch does not have it. docs/training.md gives examples. Not thread-safe.
#ifndef THINWIRE_WORKER_TRAINER_DIVERGENCE_H_
#define THINWIRE_WORKER_TRAINER_DIVERGENCE_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "common/base/ids.h"

namespace thinwire {

// Returns the guessing loss: the entropy of the labels' frequencies, in nats; nullopt without
// labels.
std::optional<double> GuessingLoss(std::span<const int32_t> labels);

class DivergenceWatch {
 public:
  explicit DivergenceWatch(std::optional<double> guessing_loss) : guessing_loss_(guessing_loss) {}

  // Adds a step with examples: the mean loss of its examples, and whether a gradient was not finite
  // although the loss was not scaled.
  void AddStep(Step step, double loss, bool gradient_overflowed);
  void FinishEpoch(uint64_t epoch);

  // Returns true if the loss of a step was not finite.
  bool loss_is_lost() const { return !lost_.empty(); }
  // Returns the symptom as text, or "" if there is none.
  const std::string& symptom() const { return lost_.empty() ? of_epoch_ : lost_; }

 private:
  // Returns the symptom of an epoch with this mean of the last steps' losses, or "" if it has none.
  std::string ComparedWithGuessing(double recent, double guessing_loss) const;

  std::optional<double> guessing_loss_;
  uint64_t step_count_ = 0;
  double first_step_loss_ = 0;
  double first_loss_ = std::numeric_limits<double>::infinity();
  std::deque<double> recent_;  // the losses of the last steps, without that of the first step
  bool epoch_had_steps_ = false;
  bool epoch_had_good_gradients_ = false;
  std::string lost_;
  std::string of_epoch_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_DIVERGENCE_H_
