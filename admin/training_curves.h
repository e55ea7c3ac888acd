// TrainingCurves: how the training of a job goes, from the lead's replies, one after the other: the
// speed of the newest steps, and the curves of the workers' losses and tests.
#ifndef THINWIRE_ADMIN_TRAINING_CURVES_H_
#define THINWIRE_ADMIN_TRAINING_CURVES_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "admin/curve.h"
#include "proto/control.pb.h"

namespace thinwire {

// Not thread-safe.
class TrainingCurves {
 public:
  // Adds a reply of the lead, whose open step is STEP, that arrived at NOW. A step that the curves
  // have already, because the job has gone back, adds no point.
  void Add(const StatusReply& reply, uint64_t step, absl::Time now);

  // Returns the speed over about the last minute; nullopt: there was no step, or it is not known.
  std::optional<double> steps_per_second() const;
  // Return curves over steps: the mean of the newest losses of the live workers, the accuracies of
  // tests, and the losses of tests. They are empty if no worker states them.
  const Curve& loss() const { return loss_; }
  const Curve& accuracy() const { return accuracy_; }
  const Curve& test_loss() const { return test_loss_; }

 private:
  struct Sample {
    absl::Time time;
    uint64_t step = 0;
  };

  std::deque<Sample> samples_;  // oldest first
  Curve loss_;
  Curve accuracy_;
  Curve test_loss_;
  uint64_t next_step_ = 0;  // of the next point of loss_
  uint64_t next_test_ = 0;  // of the next point of the tests' curves
};

// Returns what WORKER states in REPLY; null: nothing.
const WorkerProgress* ProgressOf(const StatusReply& reply, uint32_t worker);
// Returns the mean of the newest losses of the live workers; nullopt if none states one.
std::optional<double> MeanLossOf(const StatusReply& reply);
// Returns the newest test of a worker; null if there is none.
const ModelTest* NewestTestOf(const StatusReply& reply);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_TRAINING_CURVES_H_
