#include "cli/run_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using Kind = WorkerEvent::Kind;
using State = WorkerRow::State;

void ApplyEpoch(const WorkerEvent& event, EpochRow& row) {
  row.epoch = event.epoch;
  row.train_loss = (row.train_loss * row.told_count + event.train_loss) / (row.told_count + 1);
  ++row.told_count;
  if (event.test_accuracy) row.test_accuracy = event.test_accuracy;
  if (event.test_loss) row.test_loss = event.test_loss;
  row.counts += event.counts;
}

}  // namespace

RunRecord::RunRecord(uint32_t worker_count) : workers_(worker_count) {
  for (uint32_t i = 0; i < worker_count; ++i) workers_[i].worker = WorkerId{i};
}

void RunRecord::Apply(const WorkerEvent& event) {
  if (event.worker.value >= workers_.size()) return;
  WorkerRow& row = workers_[event.worker.value];
  switch (event.kind) {
    case Kind::kJoined:
      row.state = State::kTraining;
      row.step = event.step;
      row.device = event.device;
      return;
    case Kind::kWaiting:
      row.waiting = event.text;
      return;
    case Kind::kError:
      row.reason = event.text;
      return;
    case Kind::kEpoch:
      ApplyEpoch(event, epochs_[event.epoch]);
      return;
    case Kind::kStep:
      row.state = State::kTraining;
      row.epoch = event.epoch;
      row.examples = event.examples;
      row.waiting = event.text;
      break;
    case Kind::kDone:
      row.state = State::kDone;
      row.median_step_seconds = event.median_step_seconds;
      row.evaluator = event.evaluator;
      row.test_accuracy = event.test_accuracy;
      row.push_codecs = event.push_codecs;
      row.waiting.clear();
      if (event.evaluator && event.test_accuracy) final_test_accuracy_ = event.test_accuracy;
      break;
  }
  row.step = event.step;
  row.seconds = event.seconds;
  row.train_loss = event.train_loss;
  row.loss_scale = event.loss_scale;
  row.counts = event.counts;
}

void RunRecord::WorkerEnded(WorkerId worker, const ExitStatus& exit, bool stopped) {
  if (worker.value >= workers_.size()) return;
  WorkerRow& row = workers_[worker.value];
  row.waiting.clear();
  if (row.state == State::kDone && exit.ok()) return;
  row.state = stopped ? State::kStopped : State::kLost;
  row.reason =
      row.reason.empty() ? exit.ToString() : absl::StrCat(exit.ToString(), ": ", row.reason);
}

void RunRecord::ServerEnded(ServerId server, const ExitStatus& exit) {
  lost_servers_.push_back({server, exit.ToString()});
}

uint32_t RunRecord::CountOf(State state) const {
  return static_cast<uint32_t>(std::count_if(
      workers_.begin(), workers_.end(), [&](const WorkerRow& row) { return row.state == state; }));
}

WorkerCounts RunRecord::Totals() const {
  WorkerCounts total;
  for (const WorkerRow& row : workers_) total += row.counts;
  return total;
}

uint64_t RunRecord::examples() const {
  uint64_t sum = 0;
  for (const WorkerRow& row : workers_) sum += row.examples;
  return sum;
}

uint64_t RunRecord::steps() const {
  uint64_t most = 0;
  for (const WorkerRow& row : workers_) most = std::max(most, row.step);
  return most;
}

double RunRecord::seconds() const {
  double most = 0;
  for (const WorkerRow& row : workers_) most = std::max(most, row.seconds);
  return most;
}

std::optional<double> RunRecord::train_loss() const {
  double sum = 0;
  int count = 0;
  for (const WorkerRow& row : workers_) {
    if (row.seconds == 0 || row.state == State::kLost) continue;
    sum += row.train_loss;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::optional<double> RunRecord::test_accuracy() const {
  if (final_test_accuracy_) return final_test_accuracy_;
  for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch) {
    if (epoch->second.test_accuracy) return epoch->second.test_accuracy;
  }
  return std::nullopt;
}

double RunRecord::median_step_seconds() const {
  std::vector<double> medians;
  for (const WorkerRow& row : workers_) {
    if (row.state == State::kDone) medians.push_back(row.median_step_seconds);
  }
  if (medians.empty()) return 0;
  std::sort(medians.begin(), medians.end());
  const size_t half = medians.size() / 2;
  return medians.size() % 2 == 1 ? medians[half] : (medians[half - 1] + medians[half]) / 2;
}

std::string RunRecord::waiting() const {
  for (const WorkerRow& row : workers_) {
    if (!row.waiting.empty()) return absl::StrCat("worker ", row.worker.value, ": ", row.waiting);
  }
  return "";
}

const char* StateName(State state) {
  switch (state) {
    case State::kStarting:
      return "starting";
    case State::kTraining:
      return "training";
    case State::kDone:
      return "done";
    case State::kStopped:
      return "stopped";
    case State::kLost:
      return "lost";
  }
  return "unknown";
}

}  // namespace thinwire
