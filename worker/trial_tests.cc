#include "worker/trial_tests.h"

#include "common/median.h"

namespace thinwire {

bool TrialTests::IsDue(uint64_t done) const {
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

}  // namespace thinwire
