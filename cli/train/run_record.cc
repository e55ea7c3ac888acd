#include "cli/train/run_record.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "proto/counters.h"

namespace thinwire {
namespace {

using State = WorkerRow::State;

std::string ReasonOf(const ExitStatus& exit, const std::string& error) {
  return error.empty() ? exit.ToString() : absl::StrCat(exit.ToString(), ": ", error);
}

// Returns the counters of all processes of a worker. COUNTERS are those of its newest process.
WorkerCounters SumOf(const WorkerRow& row, const WorkerCounters& counters) {
  WorkerCounters sum = row.ended_counters;
  AddCounters(counters, sum);
  return sum;
}

// Adds the counts of the worker's ended process, if there is one, to those of its new process.
void BeginProcess(WorkerRow& row) {
  row.state = State::kStarting;
  row.ended_examples = row.examples;
  row.ended_seconds = row.seconds;
  row.ended_counters = row.counters;
  row.waiting.clear();
  row.diverged.clear();
  row.reason.clear();
}

}  // namespace

RunRecord::RunRecord(uint32_t worker_count) : workers_(worker_count) {
  for (uint32_t i = 0; i < worker_count; ++i) workers_[i].worker = WorkerId{i};
}

void RunRecord::Apply(const WorkerEvent& event) {
  if (event.worker() >= workers_.size()) return;
  WorkerRow& row = workers_[event.worker()];
  switch (event.event_case()) {
    case WorkerEvent::kJoined:
      row.state = State::kTraining;
      row.first_step = event.joined().step();
      row.step = row.first_step;
      row.device = event.joined().device();
      planned_steps_ = std::max(planned_steps_, event.joined().planned_steps());
      return;
    case WorkerEvent::kStep:
      return ApplyStep(event.step(), row);
    case WorkerEvent::kEpoch:
      row.diverged = event.epoch().diverged();
      return ApplyEpoch(event.epoch(), row);
    case WorkerEvent::kWaiting:
      row.waiting = event.waiting().text();
      return;
    case WorkerEvent::kDone:
      return ApplyDone(event.done(), row);
    case WorkerEvent::kError:
      row.reason = event.error().message();
      return;
    case WorkerEvent::EVENT_NOT_SET:
      return;
  }
}

void RunRecord::ApplyStep(const WorkerEvent::Step& step, WorkerRow& row) {
  row.state = State::kTraining;
  row.step = step.step();
  row.epoch = step.epoch();
  row.examples = row.ended_examples + step.examples();
  if (step.has_loss()) row.train_loss = step.loss();
  row.seconds = row.ended_seconds + step.seconds();
  if (step.has_loss_scale()) row.loss_scale = step.loss_scale();
  row.counters = SumOf(row, step.counters());
  row.waiting = step.waiting();
  if (step.planned_steps() > 0) planned_steps_ = step.planned_steps();
}

void RunRecord::ApplyEpoch(const WorkerEvent::Epoch& event, const WorkerRow& worker) {
  EpochRow& row = epochs_[event.epoch()];
  row.epoch = event.epoch();
  if (event.has_train_loss()) {
    const double sum = row.train_loss.value_or(0) * row.loss_count + event.train_loss();
    row.train_loss = sum / ++row.loss_count;
  }
  if (event.has_test_accuracy()) row.test_accuracy = event.test_accuracy();
  if (event.has_test_loss()) row.test_loss = event.test_loss();
  row.seconds = std::max(row.seconds, worker.ended_seconds + event.seconds());
  AddCounters(SumOf(worker, event.counters()), row.counters);
}

void RunRecord::ApplyDone(const WorkerEvent::Done& done, WorkerRow& row) {
  row.state = State::kDone;
  // A worker that joins after the last step may join at a step beyond it.
  const uint64_t first =
      planned_steps_ == 0 ? row.first_step : std::min(row.first_step, planned_steps_);
  row.step = first + done.steps() - done.counters().repeated_steps();
  row.examples = row.ended_examples + done.examples();
  if (done.has_final_train_loss()) row.train_loss = done.final_train_loss();
  row.seconds = row.ended_seconds + done.seconds();
  row.median_step_seconds = done.median_step_seconds();
  if (done.has_final_test_accuracy()) row.test_accuracy = done.final_test_accuracy();
  if (done.has_final_test_loss()) row.test_loss = done.final_test_loss();
  if (done.evaluator()) {
    for (WorkerRow& other : workers_) other.evaluator = false;
    row.evaluator = true;
    if (!epochs_.empty()) {
      const uint64_t last = epochs_.rbegin()->first;
      EpochRow& tested = epochs_[done.has_kept_epoch() ? done.kept_epoch() : last];
      tested.test_accuracy = row.test_accuracy;
      if (done.has_final_test_loss()) tested.test_loss = done.final_test_loss();
    }
  }
  row.output = done.output();
  if (done.has_kept_epoch()) row.kept_epoch = done.kept_epoch();
  if (done.has_loss_scale()) row.loss_scale = done.loss_scale();
  if (done.has_lost_residual_l1()) row.lost_residual_l1 = done.lost_residual_l1();
  row.counters = SumOf(row, done.counters());
  row.push_codecs.assign(done.push_codecs().begin(), done.push_codecs().end());
  row.waiting.clear();
  row.diverged = done.diverged();
}

void RunRecord::WorkerAdded(WorkerId worker) {
  while (workers_.size() <= worker.value) {
    const WorkerId added{static_cast<uint32_t>(workers_.size())};
    workers_.emplace_back().worker = added;
  }
  BeginProcess(workers_[worker.value]);
}

void RunRecord::WorkerEnded(WorkerId worker, const ExitStatus& exit, bool stopped) {
  if (worker.value >= workers_.size()) return;
  WorkerRow& row = workers_[worker.value];
  row.waiting.clear();
  if (row.state == State::kDone && exit.ok()) return;
  if (!row.diverged.empty() && exit.code == static_cast<int>(ExitCode::kDiverged)) {
    row.state = State::kDiverged;
    return;
  }
  row.state = stopped ? State::kStopped : State::kLost;
  row.reason = ReasonOf(exit, row.reason);
}

void RunRecord::WorkerRestarted(WorkerId worker, const ExitStatus& exit) {
  if (worker.value >= workers_.size()) return;
  WorkerRow& row = workers_[worker.value];
  restarts_.push_back({absl::StrCat("worker ", worker.value), ReasonOf(exit, row.reason)});
  BeginProcess(row);
}

void RunRecord::ServerRestarted(ServerId server, const ExitStatus& exit) {
  restarts_.push_back({absl::StrCat("server ", server.value), exit.ToString()});
}

void RunRecord::ServerEnded(ServerId server, const ExitStatus& exit) {
  lost_servers_.push_back({server, exit.ToString()});
}

uint32_t RunRecord::CountOf(State state) const {
  return static_cast<uint32_t>(std::count_if(
      workers_.begin(), workers_.end(), [&](const WorkerRow& row) { return row.state == state; }));
}

WorkerCounters RunRecord::Totals() const {
  WorkerCounters totals;
  for (const WorkerRow& row : workers_) AddCounters(row.counters, totals);
  return totals;
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
    if (!row.train_loss || row.state == State::kLost) continue;
    sum += *row.train_loss;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

const WorkerRow* RunRecord::writer() const {
  for (const WorkerRow& row : workers_) {
    if (row.evaluator && !row.output.empty()) return &row;
  }
  return nullptr;
}

std::optional<double> RunRecord::test_accuracy() const {
  if (const WorkerRow* row = writer()) return row->test_accuracy;
  for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch) {
    if (epoch->second.test_accuracy) return epoch->second.test_accuracy;
  }
  // A worker that joins after the last step evaluates without an epoch.
  for (const WorkerRow& row : workers_) {
    if (row.evaluator) return row.test_accuracy;
  }
  return std::nullopt;
}

std::optional<double> RunRecord::test_loss() const {
  if (const WorkerRow* row = writer()) return row->test_loss;
  for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch) {
    if (epoch->second.test_loss) return epoch->second.test_loss;
  }
  for (const WorkerRow& row : workers_) {
    if (row.evaluator) return row.test_loss;
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

std::string RunRecord::diverged() const {
  for (const WorkerRow& row : workers_) {
    if (!row.diverged.empty()) return absl::StrCat("worker ", row.worker.value, ": ", row.diverged);
  }
  return "";
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
    case State::kDiverged:
      return "diverged";
  }
  return "unknown";
}

void ServerTotals::ForEachCounter(
    const std::function<void(const std::string& name, uint64_t value)>& visit) const {
  thinwire::ForEachCounter(counters, [&](const std::string& name, uint64_t value) {
    // These fields of StatusReply are identifiers, not counters.
    if (name != "generation" && name != "epoch" && name != "next_mode_step") visit(name, value);
  });
}

double ServerTotals::mean_staleness() const {
  double sum = 0;
  double count = 0;
  for (const auto& [value, pushes] : staleness) {
    sum += static_cast<double>(value) * static_cast<double>(pushes);
    count += static_cast<double>(pushes);
  }
  return count == 0 ? 0 : sum / count;
}

uint64_t ServerTotals::max_staleness() const {
  return staleness.empty() ? 0 : staleness.rbegin()->first;
}

ServerTotals TotalsOf(std::span<const StatusReply> replies) {
  ServerTotals totals;
  if (!replies.empty()) {
    totals.rule = RuleStatusOf(replies.front());
    const auto& decisions = replies.front().precision_decisions();
    totals.decisions.assign(decisions.begin(), decisions.end());
  }
  for (const StatusReply& reply : replies) {
    AddCounters(reply, totals.counters);
    totals.noise.Add(reply);
    totals.batch.Add(reply);
    for (const auto& [value, pushes] : reply.staleness()) totals.staleness[value] += pushes;
    for (const ShardStatus& shard : reply.shards()) {
      totals.updates = std::max<uint64_t>(totals.updates, shard.version());
      if (shard.saturated_updates() > 0) totals.saturated_shards.push_back(shard.shard());
    }
  }
  std::ranges::sort(totals.saturated_shards);
  totals.counters.clear_generation();
  totals.counters.clear_epoch();
  totals.counters.clear_next_mode_step();
  return totals;
}

}  // namespace thinwire
