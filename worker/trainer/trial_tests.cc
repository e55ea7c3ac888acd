#include "worker/trainer/trial_tests.h"

#include "common/base/median.h"

namespace thinwire {

bool TrialTests::IsDue(Step begin, Step step, Step run_end) const {
  if (step < begin) return false;
  const uint64_t done = step - begin;
  if (done > 0 && begin + trial_steps_ >= run_end) return false;
  // Part i ends after trial_steps * i / kTestsPerTrial steps.
  const uint64_t i = (done * kTestsPerTrial + trial_steps_ - 1) / trial_steps_;
  return i <= kTestsPerTrial && StepsBeforePart(trial_steps_, i) == done;
}

void TrialTests::Arrive(Step begin, Step step, absl::Duration training) {
  if (step == begin || step_ < begin || step_ >= step) {
    seconds_.clear();  // another trial
  } else {
    seconds_.push_back(absl::ToDoubleSeconds(training - training_) /
                       static_cast<double>(step - step_));
  }
  step_ = step;
  training_ = training;
}

std::optional<double> TrialTests::seconds_per_step() const {
  if (seconds_.empty()) return std::nullopt;
  return Median(seconds_);
}

PrecisionTest TrialTests::MessageOf(Step step, double accuracy, std::optional<double> error,
                                    Step run_end) const {
  PrecisionTest test;
  test.set_step(step.value);
  test.set_accuracy(accuracy);
  if (const auto seconds = seconds_per_step()) test.set_seconds_per_step(*seconds);
  test.set_end(run_end.value);
  if (error.has_value()) test.set_encoding_error(*error);
  return test;
}

}  // namespace thinwire
