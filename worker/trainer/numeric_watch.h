// NumericWatch follows the values of a worker's training that are not finite: it chooses the loss
// scale, counts gradients that are not finite and notices divergence.
//
// If the loss is scaled (loss_scale.h), a step in which some shard's gradient was not finite halves
// the scale of the next step. The worker pushes such a shard with weight 0, and the other shards of
// the step with their normal weight (docs/decisions/0055). A local step whose gradient is not finite
// is skipped: it changes no parameter, its examples do not count in the weight of the push, and it
// halves the loss scale of the next local step.
#ifndef THINWIRE_WORKER_TRAINER_NUMERIC_WATCH_H_
#define THINWIRE_WORKER_TRAINER_NUMERIC_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/time/log_limit.h"
#include "proto/worker_event.pb.h"
#include "worker/models/model.h"
#include "worker/trainer/divergence.h"
#include "worker/trainer/loss_scale.h"
#include "worker/trainer/trainer_parts.h"

namespace thinwire {

// Not thread-safe.
class NumericWatch {
 public:
  // OPTIONS and PARTS must outlive this object.
  NumericWatch(const TrainerOptions& options, const TrainerParts& parts);

  // Returns the factor of the next step's loss: 1 if the loss is not scaled.
  float loss_scale() const { return scale_ ? scale_->value() : 1; }
  // Returns the loss scale; null if the loss is not scaled.
  LossScale* scale() { return scale_ ? &*scale_ : nullptr; }
  const LossScale* scale() const { return scale_ ? &*scale_ : nullptr; }
  // Returns the client's counters and the trainer's own counters.
  WorkerCounters Counters() const;

  // Adds the RESULT of a forward and backward pass on BATCH.
  void AddPass(const Batch& batch, const BatchResult& result);
  // Adds a local step of STEP. FINITE: its gradient was finite.
  void AddLocalStep(Step step, bool finite);
  // Adds a step with examples and this mean loss. REQUIRES: Client::EndStep has returned.
  void AddStep(Step step, double loss);
  void FinishEpoch(uint64_t epoch) { divergence_.FinishEpoch(epoch); }
  // Forgets the symptoms of divergence, when the steps that had them are discarded.
  void ForgetSteps();

  // Returns true if the loss of a step was not finite.
  bool loss_is_lost() const { return divergence_.loss_is_lost(); }
  bool has_symptom() const { return !divergence_.symptom().empty(); }
  // Returns the symptom of divergence with its cause or the advice; "" if there is none.
  std::string DivergenceText() const;

 private:
  // Updates the loss scale after a step, or after a local step. WHAT names the gradients that are
  // not finite, "" if there are none.
  void UpdateScale(Step step, const std::string& what);

  const TrainerOptions& options_;
  const TrainerParts& parts_;
  std::optional<LossScale> scale_;
  DivergenceWatch divergence_;
  bool batch_was_finite_ = true;      // false: the first batch with a lost loss had a bad example
  uint64_t skipped_local_steps_ = 0;  // because their gradients were not finite
  // The counter nonfinite_gradients of Counters() after the last step with examples.
  uint64_t nonfinite_gradients_ = 0;
  LogLimit overflow_lines_{20, absl::Seconds(10)};  // about the loss scale
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_NUMERIC_WATCH_H_
