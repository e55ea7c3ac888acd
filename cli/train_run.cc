#include "cli/train_run.h"

#include <google/protobuf/text_format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status_macros.h"
#include "proto/worker_event_json.h"

namespace thinwire {
namespace {

using google::protobuf::TextFormat;
using State = WorkerRow::State;

constexpr char kJobFile[] = "job.textproto";
constexpr absl::Duration kAnswerTimeout = absl::Seconds(30);
// After a server has failed, the workers have `silence_seconds` plus this time to report the
// failure.
constexpr absl::Duration kReportTime = absl::Seconds(10);

bool ByRound(const JobConfig& config) {
  return config.consistency().mode() == Consistency::Mode::sync ||
         config.consistency().mode() == Consistency::Mode::backup;
}

// Returns the number after `start` in `name`: 3 for "worker 3" and "worker ".
std::optional<uint32_t> NumberOf(const std::string& name, const std::string& start) {
  uint32_t number = 0;
  if (!name.starts_with(start) || !absl::SimpleAtoi(name.substr(start.size()), &number))
    return std::nullopt;
  return number;
}

}  // namespace

TrainRun::TrainRun(const TrainSetting& setting, Signals& signals, const TempDir& dir,
                   Console& console, Clock& clock)
    : setting_(setting),
      dir_(dir),
      console_(console),
      clock_(clock),
      processes_(signals, dir.path()),
      result_{.config = setting.config,
              .record = RunRecord(setting.config.consistency().workers()),
              .totals = std::nullopt,
              .parameters_crc32c = std::nullopt,
              .problems = {},
              .interrupted = false},
      progress_(ByRound(setting.config)),
      addresses_(setting.config.servers()),
      next_progress_(clock.Now() + console.interval()) {}

ExitCode TrainRun::Run() {
  absl::Status started = StartServers();
  if (started.ok()) AwaitServers();
  if (started.ok() && result_.problems.empty() && signal_ == 0) {
    started = StartWorkers();
    if (started.ok()) AwaitWorkers();
  }
  console_.EndProgress();
  if (!started.ok()) Fail(std::string(started.message()));
  if (calls_ != nullptr && result_.record.lost_servers().empty() && signal_ == 0) AskServers();
  StopServers();
  result_.interrupted = signal_ != 0;
  return Result();
}

absl::Status TrainRun::StartServers() {
  std::string text;
  TextFormat::PrintToString(setting_.config, &text);
  RETURN_IF_ERROR(dir_.WriteFile(kJobFile, text));
  for (uint32_t i = 0; i < setting_.config.servers(); ++i) {
    RETURN_IF_ERROR(processes_.Start(
        NameOf(ServerId{i}), ServerCommand(setting_.programs, dir_.PathOf(kJobFile), ServerId{i})));
  }
  return absl::OkStatus();
}

absl::Status TrainRun::StartWorkers() {
  calls_ = std::make_unique<ServerCalls>(addresses_);
  for (uint32_t i = 0; i < setting_.config.consistency().workers(); ++i) {
    const absl::Status status = processes_.Start(
        NameOf(WorkerId{i}),
        WorkerCommand(setting_.programs, dir_.PathOf(kJobFile), WorkerId{i}, addresses_));
    if (!status.ok()) {
      processes_.SignalAll(SIGTERM);
      return status;
    }
  }
  return absl::OkStatus();
}

void TrainRun::AwaitServers() {
  const auto silent = [this] {
    return std::find(addresses_.begin(), addresses_.end(), "") - addresses_.begin();
  };
  const auto done = [&] {
    return silent() == static_cast<ptrdiff_t>(addresses_.size()) || !result_.problems.empty() ||
           signal_ != 0;
  };
  Watch(done, clock_.Now() + setting_.start_timeout);
  if (done()) return;
  const std::string name = NameOf(ServerId{static_cast<uint32_t>(silent())});
  Fail(absl::StrCat(name, ": not listening after ", absl::FormatDuration(setting_.start_timeout),
                    " (expected \"listening HOST:PORT\" on its standard output)"));
  ShowTail(name);
}

void TrainRun::AwaitWorkers() {
  const auto done = [this] { return running_workers() == 0; };
  while (!done()) {
    std::optional<absl::Time> deadline = kill_at_ ? kill_at_ : stop_at_;
    Watch([&] { return done() || (kill_at_ ? kill_at_ : stop_at_) != deadline; }, deadline);
    if (done() || (kill_at_ ? kill_at_ : stop_at_) != deadline) continue;
    // The deadline has passed. The first deadline stops the workers; the second one kills them.
    const int number = kill_at_ ? SIGKILL : SIGTERM;
    kill_at_ = clock_.Now() + setting_.grace;
    for (const WorkerRow& row : result_.record.workers())
      processes_.Signal(NameOf(row.worker), number);
  }
}

void TrainRun::AskServers() {
  auto statuses = calls_->Status(kAnswerTimeout);
  if (!statuses.ok()) return Fail(std::string(statuses.status().message()));
  result_.totals = TotalsOf(*statuses);
  const bool sealed =
      std::all_of(statuses->begin(), statuses->end(), [](const auto& s) { return s.sealed(); });
  if (!sealed) return;  // no worker ever joined, so the servers have no parameters
  const auto crc = calls_->MastersCrc32c(*statuses, kAnswerTimeout);
  if (!crc.ok()) return Fail(std::string(crc.status().message()));
  result_.parameters_crc32c = *crc;
}

void TrainRun::StopServers() {
  stopping_servers_ = true;
  processes_.SignalAll(SIGTERM);
  const auto done = [this] { return processes_.running_count() == 0; };
  Watch(done, clock_.Now() + setting_.grace);
  if (done()) return;
  console_.Warning(absl::StrCat(processes_.running_count(), " processes did not stop within ",
                                absl::FormatDuration(setting_.grace), "; killing them"));
  processes_.SignalAll(SIGKILL);
  Watch(done, std::nullopt);
}

ExitCode TrainRun::Result() const {
  if (signal_ != 0) return signal_ == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
  const bool all_done =
      result_.record.CountOf(State::kDone) > 0 && result_.record.lost_servers().empty();
  if (all_done) return ExitCode::kOk;
  const auto of_config = [](const ExitStatus& end) {
    return end.code == static_cast<int>(ExitCode::kConfig);
  };
  if (std::any_of(failures_.begin(), failures_.end(), of_config)) return ExitCode::kConfig;
  return ExitCode::kUnavailable;
}

template <typename Done>
void TrainRun::Watch(Done done, std::optional<absl::Time> deadline) {
  while (!done()) {
    const absl::Time now = clock_.Now();
    if (deadline && now >= *deadline) return;
    if (now >= next_progress_) ShowProgress();
    const absl::Time until = deadline ? std::min(*deadline, next_progress_) : next_progress_;
    for (const ProcessEvent& event : processes_.Wait(until - now)) Handle(event);
  }
}

void TrainRun::Handle(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEvent::Kind::kLine:
      return HandleLine(event);
    case ProcessEvent::Kind::kLog:
      if (IsWarningOrError(event.text)) console_.Note(absl::StrCat(event.name, ": ", event.text));
      return;
    case ProcessEvent::Kind::kExit:
      return HandleExit(event);
    case ProcessEvent::Kind::kSignal:
      return HandleSignal(event.signal);
  }
}

void TrainRun::HandleLine(const ProcessEvent& event) {
  if (const auto server = ServerOf(event.name)) {
    const auto address = ParseListening(event.text);
    if (address.ok()) {
      addresses_[server->value] = *address;
    } else {
      console_.Note(absl::StrCat(event.name, ": ", event.text));
    }
    return;
  }
  const auto worker_event = ParseWorkerEvent(event.text);
  if (!worker_event.ok()) {
    console_.Note(absl::StrCat(event.name, ": ", event.text));
  } else if (WorkerOf(event.name) == WorkerId{worker_event->worker()}) {
    HandleWorkerEvent(*worker_event);
  }
}

void TrainRun::HandleWorkerEvent(const WorkerEvent& event) {
  result_.record.Apply(event);
  const WorkerEvent::Epoch& epoch = event.epoch();
  if (!epoch.has_test_accuracy()) return;
  console_.Note(absl::StrFormat("epoch %u: train loss %.4f, test accuracy %.4f (%s)", epoch.epoch(),
                                epoch.train_loss(), epoch.test_accuracy(),
                                NameOf(WorkerId{event.worker()})));
}

void TrainRun::HandleExit(const ProcessEvent& event) {
  if (const auto server = ServerOf(event.name); server && !stopping_servers_) {
    result_.record.ServerEnded(*server, event.exit);
    failures_.push_back(event.exit);
    Fail(absl::StrCat(event.name, " lost: ", event.exit.ToString()));
    ShowTail(event.name);
    if (running_workers() > 0 && !stop_at_) {
      stop_at_ = clock_.Now() + absl::Seconds(setting_.config.silence_seconds()) + kReportTime;
    }
  }
  const auto worker = WorkerOf(event.name);
  if (!worker) return;
  result_.record.WorkerEnded(*worker, event.exit, signal_ != 0);
  const WorkerRow& row = result_.record.workers()[worker->value];
  if (row.state != State::kLost) return;
  failures_.push_back(event.exit);
  Fail(absl::StrCat(event.name, " lost: ", row.reason));
  // The end of the log is shown only if the worker has not reported an error.
  if (row.reason == event.exit.ToString()) ShowTail(event.name);
}

void TrainRun::HandleSignal(int number) {
  if (signal_ != 0) {
    console_.Warning("second signal: killing all processes");
    processes_.SignalAll(SIGKILL);
    return;
  }
  signal_ = number;
  kill_at_ = clock_.Now() + setting_.grace;
  console_.Note(
      absl::StrCat(number == SIGINT ? "interrupted" : "terminated", ": stopping the workers"));
  for (const WorkerRow& row : result_.record.workers())
    processes_.Signal(NameOf(row.worker), SIGTERM);
}

void TrainRun::ShowProgress() {
  next_progress_ = clock_.Now() + console_.interval();
  if (calls_ == nullptr || running_workers() == 0) return;
  std::optional<double> staleness;
  if (const auto latest = calls_->latest(); !latest.empty())
    staleness = TotalsOf(latest).mean_staleness();
  console_.Progress(progress_.Line(result_.record, staleness, clock_.Now()));
  calls_->AskStatus();
}

void TrainRun::Fail(const std::string& problem) {
  console_.Error(problem);
  result_.problems.push_back(problem);
}

void TrainRun::ShowTail(const std::string& name) {
  const std::vector<std::string> tail = processes_.Tail(name);
  if (tail.empty()) return;
  console_.Note(absl::StrCat("last lines of ", name, ":"));
  for (const std::string& line : tail) console_.Note("  " + line);
}

std::optional<WorkerId> TrainRun::WorkerOf(const std::string& name) const {
  const auto number = NumberOf(name, "worker ");
  return number ? std::optional(WorkerId{*number}) : std::nullopt;
}

std::optional<ServerId> TrainRun::ServerOf(const std::string& name) const {
  const auto number = NumberOf(name, "server ");
  return number ? std::optional(ServerId{*number}) : std::nullopt;
}

uint32_t TrainRun::running_workers() const {
  uint32_t count = 0;
  for (const WorkerRow& row : result_.record.workers())
    count += processes_.running(NameOf(row.worker)) ? 1 : 0;
  return count;
}

}  // namespace thinwire
