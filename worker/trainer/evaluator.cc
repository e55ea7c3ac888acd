#include "worker/trainer/evaluator.h"

#include <glog/logging.h>

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/time/trace.h"
#include "proto/control.pb.h"
#include "proto/precision.pb.h"
#include "proto/worker_event.pb.h"
#include "worker/batches/batch_buffer.h"

namespace thinwire {

Evaluator::Evaluator(const TrainerOptions& options, const TrainerParts& parts,
                     const NumericWatch& numbers, Stopwatch& stopwatch)
    : options_(options), parts_(parts), numbers_(numbers), stopwatch_(stopwatch) {
  if (options.trial_steps > 0) trial_tests_.emplace(options.trial_steps);
  if (options.output) output_.emplace(*options.output, parts.client, parts.model, parts.test);
}

absl::StatusOr<bool> Evaluator::IsAppointed() {
  ASSIGN_OR_RETURN(const WorkerId evaluator, parts_.client.members().Evaluator());
  return evaluator == options_.worker;
}

absl::Status Evaluator::Test(Step step) {
  const TraceSpan span(parts_.tracer, kTrainingLane, "evaluation");
  // Waits for the parameters of the next step, which include the updates of the last step.
  RETURN_IF_ERROR(parts_.client.WaitAll());
  stopwatch_.Stop();
  const absl::StatusOr<BatchResult> result = TestParameters();
  stopwatch_.Start();
  RETURN_IF_ERROR(result.status());
  test_ = *result;
  ModelTest test;
  test.set_step(step.value);
  if (const std::optional<double> accuracy = test_->accuracy(); accuracy.has_value()) {
    test.set_accuracy(*accuracy);
  } else {
    test.set_loss(test_->mean_loss());
  }
  parts_.client.members().ReportTest(test);
  return absl::OkStatus();
}

absl::StatusOr<BatchResult> Evaluator::TestParameters() {
  if (output_ && output_->keeps_best()) return output_->Test();
  if (!options_.averages) return Evaluate(parts_.model, parts_.test);
  ModelParameters averages;
  return TestServerParameters(parts_.client, parts_.model, parts_.test, averages);
}

bool Evaluator::IsInTrial(Step step) const {
  const std::optional<Step> end = TrialEnd();
  // The lead ends the trial at once if it is longer than the run.
  return end.has_value() && step < *end && *end < parts_.sampler.EpochBegin(options_.epochs);
}

std::optional<Step> Evaluator::TrialEnd() const {
  const std::optional<Step> begin = parts_.client.trials().first_step();
  if (!begin.has_value()) return std::nullopt;
  return *begin + trial_tests_->trial_steps();
}

absl::Status Evaluator::TestTrial(Step step) {
  const std::optional<Step> begin = parts_.client.trials().first_step();
  const Step run_end = parts_.sampler.EpochBegin(options_.epochs);
  if (!begin.has_value() || !trial_tests_->IsDue(*begin, step, run_end)) return absl::OkStatus();
  const uint64_t done = step - *begin;
  const bool is_last = FollowsTrial(step);
  RETURN_IF_ERROR(parts_.client.WaitAll());
  trial_tests_->Arrive(*begin, step, stopwatch_.elapsed());
  std::optional<double> error;
  if (is_last) error = parts_.client.trials().StopErrorMeasurement();
  if (trial_tests_->BeginsMeasuredParts(done)) parts_.client.trials().StartErrorMeasurement();
  // The evaluator may be lost while the other workers wait for the decision.
  ASSIGN_OR_RETURN(bool evaluates, IsAppointed());
  while (!evaluates && is_last && !parts_.client.deals().IsDealt(step)) {
    RETURN_IF_ERROR(parts_.client.members().Refresh());
    ASSIGN_OR_RETURN(evaluates, IsAppointed());
  }
  if (!evaluates) return absl::OkStatus();
  RETURN_IF_ERROR(Test(step));
  // push: adaptive refuses loss: script, so there is an accuracy.
  parts_.client.trials().Report(trial_tests_->MessageOf(step, *test_->accuracy(), error, run_end));
  return absl::OkStatus();
}

void Evaluator::KeepBest(uint64_t epoch) {
  if (!output_ || !output_->keeps_best() || !test_ || IsUseless(*test_)) return;
  const absl::Status written = output_->Write(*test_, parts_.sampler.EpochBegin(epoch + 1), epoch);
  if (!written.ok()) LOG(ERROR) << "model not written: " << written.message();
}

bool Evaluator::IsUseless(const BatchResult& test) const {
  return numbers_.has_symptom() && !std::isfinite(test.loss_sum);
}

absl::Status Evaluator::AwaitOthers() {
  stopwatch_.Stop();
  RETURN_IF_ERROR(parts_.client.members().WaitUntilAlone());
  writes_output_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> Evaluator::WriteOutput() {
  ASSIGN_OR_RETURN(const BatchResult result, output_->Test());
  if (IsUseless(result)) {
    LOG(ERROR) << "model not written: the test loss of the final parameters is not finite";
    test_ = result;
    return true;
  }
  const auto write = [&] {
    return output_->Write(result, parts_.sampler.EpochBegin(options_.epochs), options_.epochs - 1);
  };
  const auto wait_for = [this](const std::string& text) {
    WorkerEvent event;
    event.mutable_waiting()->set_text(text);
    parts_.events.Write(std::move(event));
  };
  absl::Status written = write();
  if (!written.ok() && !absl::IsInvalidArgument(written)) {
    LOG(ERROR) << "model not written: " << written.message() << "; tries again every "
               << options_.write_again << " until it is stopped";
    wait_for(absl::StrCat("waits until the model can be written: ", written.message()));
    do {
      parts_.client.Pause(options_.write_again);
      written = write();
    } while (!written.ok() && !parts_.stop(absl::ZeroDuration()));
    if (!written.ok()) return false;
    wait_for("");
  }
  RETURN_IF_ERROR(written);
  test_ = output_->written()->test;
  return true;
}

}  // namespace thinwire
