#include "cli/train/run_summary.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<RunSummary>> RunSummary::Create(const std::string& folder,
                                                               const Schedule& schedule,
                                                               Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSummary> summary,
                   TrainingSummary::Create(folder, clock));
  return std::unique_ptr<RunSummary>(new RunSummary(std::move(summary), schedule));
}

void RunSummary::Update(const RunRecord& record, const std::map<uint64_t, uint64_t>& staleness) {
  const uint64_t step = record.steps();
  if (step == 0) return;
  // The servers count examples. Steps are the same share of the plan.
  summary_->Add({.step = step,
                 .loss = record.train_loss(),
                 .learning_rate = schedule_.Rate(step, record.planned_steps()),
                 .examples = record.examples(),
                 .seconds = record.seconds(),
                 .counters = record.Totals(),
                 .staleness = staleness});
}

void RunSummary::AddTest(const RunRecord& record, const WorkerEvent::Epoch& epoch) {
  if (!epoch.has_test_loss()) return;
  summary_->AddTest(record.steps(),
                    epoch.has_test_accuracy() ? std::optional(epoch.test_accuracy()) : std::nullopt,
                    epoch.test_loss());
}

}  // namespace thinwire
