#include "admin/training_summary.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<TrainingSummary>> TrainingSummary::Create(const std::string& folder,
                                                                         Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<SummaryWriter> writer, SummaryWriter::Create(folder, clock));
  return std::unique_ptr<TrainingSummary>(new TrainingSummary(std::move(writer)));
}

void TrainingSummary::Add(const TrainingFigures& figures) {
  if (previous_.has_value() && previous_->step == figures.step && previous_->loss == figures.loss &&
      previous_->staleness == figures.staleness) {
    return;
  }
  std::vector<Scalar> scalars;
  if (figures.loss) scalars.push_back({"train/loss", *figures.loss});
  if (figures.learning_rate) scalars.push_back({"train/learning_rate", *figures.learning_rate});
  // After a rollback, the step is smaller than before, and so are the counts of a new process.
  if (previous_.has_value() && figures.step > previous_->step &&
      figures.seconds > previous_->seconds && figures.examples >= previous_->examples) {
    const double seconds = figures.seconds - previous_->seconds;
    scalars.push_back({"train/examples_per_second",
                       static_cast<double>(figures.examples - previous_->examples) / seconds});
    scalars.push_back(
        {"train/step_seconds", seconds / static_cast<double>(figures.step - previous_->step)});
  }
  const WorkerCounters& counters = figures.counters;
  const std::pair<const char*, uint64_t> bytes[] = {
      {"bytes/push_raw", counters.push_bytes_raw()},
      {"bytes/push_encoded", counters.push_bytes_encoded()},
      {"bytes/pull_raw", counters.pull_bytes_raw()},
      {"bytes/pull_encoded", counters.pull_bytes_encoded()}};
  for (const auto& [tag, count] : bytes) scalars.push_back({tag, static_cast<double>(count)});
  writer_->AddScalars(figures.step, scalars);
  if (!figures.staleness.empty()) {
    writer_->AddHistogram(figures.step, "servers/staleness", figures.staleness);
  }
  previous_ = figures;
}

void TrainingSummary::AddTest(uint64_t step, std::optional<double> accuracy, double loss) {
  std::vector<Scalar> scalars;
  if (accuracy) scalars.push_back({"test/accuracy", *accuracy});
  scalars.push_back({"test/loss", loss});
  writer_->AddScalars(step, scalars);
}

}  // namespace thinwire
