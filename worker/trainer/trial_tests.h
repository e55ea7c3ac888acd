// TrialTests is the evaluator's plan in a trial of push: adaptive (docs/adaptive_precision.md): the
// steps before which it tests the model, and the time of a step between two tests. Not thread-safe.
#ifndef THINWIRE_WORKER_TRAINER_TRIAL_TESTS_H_
#define THINWIRE_WORKER_TRAINER_TRIAL_TESTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/push_spec.h"
#include "proto/precision.pb.h"

namespace thinwire {

class TrialTests {
 public:
  // TRIAL_STEPS: adaptive_speculate_steps. REQUIRES: it is at least kTestsPerTrial.
  explicit TrialTests(uint64_t trial_steps) : trial_steps_(trial_steps) {}

  uint64_t trial_steps() const { return trial_steps_; }
  // Returns whether the model is tested before STEP of a trial that begins at BEGIN, in a run that ends
  // before RUN_END: before the first step, and after each of kTestsPerTrial parts of about equal
  // length. Of a trial that is longer than the run, only the first test is due: it tells the lead to
  // end the trial.
  bool IsDue(Step begin, Step step, Step run_end) const;
  // Returns whether the parts with a measured encoding error begin after DONE steps.
  bool BeginsMeasuredParts(uint64_t done) const {
    return done == StepsBeforePart(trial_steps_, kTestsPerTrial - kMeasuredParts);
  }
  // Records that the trial that began at BEGIN has arrived at STEP, before which a test is due.
  // TRAINING is the time that the process has trained, without tests.
  void Arrive(Step begin, Step step, absl::Duration training);
  // Returns the median over the parts of the trial; nullopt before the end of the first part that
  // this process has trained whole.
  std::optional<double> seconds_per_step() const;
  // Returns the message of a test before STEP with ACCURACY. ERROR: the encoding error, if the trial
  // ends.
  PrecisionTest MessageOf(Step step, double accuracy, std::optional<double> error,
                          Step run_end) const;

 private:
  const uint64_t trial_steps_;
  // Of the last call of Arrive.
  Step step_;
  absl::Duration training_;
  std::vector<double> seconds_;  // per step, in each part
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_TRIAL_TESTS_H_
