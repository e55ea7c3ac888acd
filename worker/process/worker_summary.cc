#include "worker/process/worker_summary.h"

#include <glog/logging.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<WorkerSummary>> WorkerSummary::Create(const std::string& folder,
                                                                     Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSummary> summary,
                   TrainingSummary::Create(folder, clock));
  return std::unique_ptr<WorkerSummary>(new WorkerSummary(std::move(summary)));
}

void WorkerSummary::Add(const WorkerEvent& event) {
  if (event.has_step()) {
    const WorkerEvent::Step& step = event.step();
    step_ = step.step();
    summary_->Add({.step = step_,
                   .loss = step.has_loss() ? std::optional(step.loss()) : std::nullopt,
                   .learning_rate = std::nullopt,
                   .examples = step.examples(),
                   .seconds = step.seconds(),
                   .counters = step.counters(),
                   .staleness = {}});
  } else if (event.has_epoch() && event.epoch().has_test_loss()) {
    const WorkerEvent::Epoch& epoch = event.epoch();
    summary_->AddTest(
        step_, epoch.has_test_accuracy() ? std::optional(epoch.test_accuracy()) : std::nullopt,
        epoch.test_loss());
  } else {
    return;
  }
  if (failed_) return;
  if (const absl::Status flushed = summary_->Flush(); !flushed.ok()) {
    failed_ = true;
    LOG(ERROR) << "TensorBoard: no figures from now on: " << flushed.message();
  }
}

}  // namespace thinwire
