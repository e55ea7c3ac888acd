#include "cli/train/train_run.h"

#include <google/protobuf/text_format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/spec/rule.h"
#include "config/parts/consistency.h"
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
constexpr absl::Duration kTargetInterval = absl::Seconds(1);

// Returns true if the command line or the configuration of a process was wrong. A new process would
// end in the same way.
bool HadWrongSettings(const ExitStatus& exit) {
  return exit.code == static_cast<int>(ExitCode::kUsage) ||
         exit.code == static_cast<int>(ExitCode::kConfig);
}

// Returns true if a worker ended in order: it is done, has diverged or was stopped.
bool EndedInOrder(const ExitStatus& exit) {
  return exit.ok() || exit.code == static_cast<int>(ExitCode::kDiverged) ||
         exit.code == static_cast<int>(ExitCode::kPreempted);
}

constexpr absl::Duration kRecordsInterval = absl::Seconds(1);

// A longer error message is cut.
constexpr size_t kMaxSentence = 400;

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Returns an error message without its details: the lines after the first one, and the connection
// attempts that gRPC lists. The log of the process has the whole message.
std::string SentenceOf(const std::string& message) {
  std::string line = FirstLine(message);
  line = line.substr(0, line.find("; last error: "));
  return line.size() <= kMaxSentence ? line : absl::StrCat(line.substr(0, kMaxSentence), "...");
}

// Returns the number that follows the prefix `start` in `name`, such as 3 if `name` is "worker 3"
// and `start` is "worker ".
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
              .resumed_step = std::nullopt,
              .problems = {},
              .interrupted = false},
      progress_(RuleOf(setting.config.consistency()).fold == Fold::kRound),
      addresses_(setting.config.servers()),
      listening_(setting.config.servers(), false),
      next_progress_(clock.Now() + console.interval()),
      target_workers_(setting.config.consistency().workers()),
      next_target_(clock.Now()),
      next_records_(setting.admin == nullptr && setting.summary == nullptr ? absl::InfiniteFuture()
                                                                           : clock.Now()) {}

ExitCode TrainRun::Run() {
  absl::Status started = StartServers();
  if (started.ok() && result_.problems.empty() && signal_ == 0) {
    calls_ =
        std::make_unique<ServerCalls>(addresses_, setting_.credentials.value_or(Credentials()));
    console_.Note(absl::StrCat("servers ", absl::StrJoin(addresses_, ",")));
    started = StartWorkers();
    if (started.ok()) {
      AwaitWorkers();
      AwaitServers(0);
    }
  }
  console_.ClearProgress();
  if (!started.ok()) Fail(std::string(started.message()));
  if (result_.record.CountOf(State::kDiverged) > 0) {
    Fail(absl::StrCat("diverged: ", result_.record.diverged()));
  }
  ObtainModel();
  if (result_.record.steps() > 0 && result_.record.lost_servers().empty() && signal_ == 0)
    AskServers();
  UpdateSummary();
  // A stopping server waits until its peers close their connections, and no thread of this process
  // serves an idle connection.
  calls_.reset();
  StopServers();
  result_.interrupted = signal_ != 0;
  return Result();
}

absl::Status TrainRun::StartServers() {
  std::string text;
  TextFormat::PrintToString(setting_.config, &text);
  RETURN_IF_ERROR(dir_.WriteFile(kJobFile, text));
  for (uint32_t i = 1; i < setting_.config.servers(); ++i) RETURN_IF_ERROR(Start(ServerId{i}));
  AwaitServers(1);
  if (!result_.problems.empty() || signal_ != 0) return absl::OkStatus();
  RETURN_IF_ERROR(Start(ServerId{0}));
  AwaitServers(0);
  return absl::OkStatus();
}

absl::Status TrainRun::Start(ServerId server) {
  if (setting_.hosts != nullptr) {
    return processes_.Start(NameOf(server), setting_.hosts->ServerCommand(server, addresses_),
                            SignalPath::kInput);
  }
  return Start(NameOf(server), ServerCommand(setting_.programs, dir_.PathOf(kJobFile), server,
                                             addresses_, setting_.state_dir));
}

absl::Status TrainRun::Start(WorkerId worker) {
  if (setting_.hosts != nullptr) {
    ASSIGN_OR_RETURN(const std::vector<std::string> command,
                     setting_.hosts->WorkerCommand(worker, addresses_));
    return processes_.Start(NameOf(worker), command, SignalPath::kInput);
  }
  return Start(NameOf(worker), WorkerCommand(setting_.programs, dir_.PathOf(kJobFile), worker,
                                             addresses_, setting_.output, setting_.state_dir));
}

absl::Status TrainRun::Start(const std::string& name, std::vector<std::string> command) {
  if (setting_.trace) {
    command.insert(command.end(), {"--trace", dir_.PathOf(absl::StrCat(name, kTraceEnding))});
  }
  return processes_.Start(name, command);
}

absl::Status TrainRun::StartWorkers() {
  for (uint32_t i = 0; i < setting_.config.consistency().workers(); ++i) {
    const absl::Status status = Start(WorkerId{i});
    if (!status.ok()) {
      processes_.SignalAll(SIGTERM);
      return status;
    }
  }
  return absl::OkStatus();
}

void TrainRun::AwaitServers(uint32_t first) {
  const auto silent = [this, first] {
    return std::find(listening_.begin() + first, listening_.end(), false) - listening_.begin();
  };
  const auto done = [&] {
    return silent() == static_cast<ptrdiff_t>(listening_.size()) ||
           !result_.record.lost_servers().empty() || signal_ != 0;
  };
  absl::Duration timeout = setting_.start_timeout;
  if (keeps_state()) {
    // A server recovers its state before it listens.
    timeout = std::max(timeout, absl::Seconds(setting_.config.recovery().server_return_seconds()));
  }
  Watch(done, clock_.Now() + timeout);
  if (done()) return;
  const std::string name = NameOf(ServerId{static_cast<uint32_t>(silent())});
  Fail(absl::StrCat(name, ": not listening after ", absl::FormatDuration(timeout),
                    " (expected \"listening HOST:PORT\" on its standard output)"));
}

void TrainRun::AwaitWorkers() {
  const auto done = [this] { return running_workers() == 0; };
  while (!done()) {
    std::optional<absl::Time> deadline = kill_at_ ? kill_at_ : stop_at_;
    Watch([&] { return done() || (kill_at_ ? kill_at_ : stop_at_) != deadline; }, deadline);
    if (done() || (kill_at_ ? kill_at_ : stop_at_) != deadline) continue;
    // A deadline for the workers' end has passed. At the first deadline the workers receive
    // SIGTERM, and at the second deadline, `grace` later, SIGKILL.
    const int number = kill_at_ ? SIGKILL : SIGTERM;
    kill_at_ = clock_.Now() + setting_.grace;
    for (const WorkerRow& row : result_.record.workers())
      processes_.Signal(NameOf(row.worker), number);
  }
}

void TrainRun::ObtainModel() {
  if (gave_model_up_) {
    Fail(absl::StrCat(
        "--output: ", setting_.output.path,
        ": not written, because the worker was stopped before the file system let it"));
  }
  const bool diverged = Result() == ExitCode::kDiverged;
  if ((Result() != ExitCode::kOk && !diverged) || setting_.output.path.empty()) return;
  const WorkerRow* writer = result_.record.writer();
  absl::Status status;
  if (writer == nullptr) {
    if (diverged) return;
    status = absl::NotFoundError("not written, because the evaluating worker was lost");
  } else if (setting_.hosts != nullptr) {
    status = setting_.hosts->FetchModel(writer->worker);
    if (absl::IsCancelled(status)) signal_ = setting_.hosts->signal();
  }
  if (status.ok()) return;
  model_is_missing_ = true;
  Fail(absl::StrCat("--output: ", setting_.output.path, ": ", status.message()));
}

void TrainRun::AskServers() {
  auto statuses = calls_->Status(kAnswerTimeout);
  if (!statuses.ok()) return Fail(std::string(statuses.status().message()));
  result_.totals = TotalsOf(*statuses);
  if (const auto& shards = result_.totals->saturated_shards; !shards.empty()) {
    Fail(absl::StrCat("parameters or optimizer slots reached the largest float in shards ",
                      absl::StrJoin(shards, ", ")));
  }
  const bool sealed =
      std::all_of(statuses->begin(), statuses->end(), [](const auto& s) { return s.sealed(); });
  if (!sealed) return;  // before the first Join, a server has no parameters
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
  if (gave_model_up_) return ExitCode::kIo;
  if (signal_ != 0) return signal_ == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
  if (result_.record.CountOf(State::kDiverged) > 0) return ExitCode::kDiverged;
  const bool all_done =
      result_.record.CountOf(State::kDone) > 0 && result_.record.lost_servers().empty();
  if (all_done) return model_is_missing_ ? ExitCode::kUnavailable : ExitCode::kOk;
  const auto of_config = [](const ExitStatus& end) {
    return end.code == static_cast<int>(ExitCode::kConfig);
  };
  if (std::any_of(failures_.begin(), failures_.end(), of_config)) return ExitCode::kConfig;
  return ExitCode::kUnavailable;
}

template <typename Done>
void TrainRun::Watch(Done done, std::optional<absl::Time> deadline) {
  while (true) {
    StartDueProcesses();
    StartAddedWorkers();
    if (done()) return;
    const absl::Time now = clock_.Now();
    if (deadline && now >= *deadline) return;
    if (now >= next_progress_) ShowProgress();
    if (now >= next_records_) UpdateRecords();
    absl::Time until =
        std::min({deadline.value_or(absl::InfiniteFuture()), next_progress_, next_records_});
    if (calls_ != nullptr && !ending()) until = std::min(until, next_target_);
    for (const auto& [name, restart] : delayed_restarts_) until = std::min(until, restart.due);
    for (const ProcessEvent& event : processes_.Wait(until - now)) Handle(event);
  }
}

void TrainRun::Handle(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEvent::Kind::kLine:
      return HandleLine(event);
    case ProcessEvent::Kind::kLog:
      return HandleLog(event);
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
      listening_[server->value] = true;
      // After a restart, the channels to the ended process may wait before they connect again. New
      // channels connect at once.
      if (calls_ != nullptr) {
        calls_ =
            std::make_unique<ServerCalls>(addresses_, setting_.credentials.value_or(Credentials()));
      }
    } else {
      console_.Note(absl::StrCat(event.name, ": ", event.text));
    }
    return;
  }
  auto worker_event = ParseWorkerEvent(event.text);
  if (!worker_event.ok()) {
    console_.Note(absl::StrCat(event.name, ": ", event.text));
    return;
  }
  if (setting_.hosts != nullptr && !worker_event->done().output().empty()) {
    // The worker names the file on its own machine. This machine gets a copy.
    worker_event->mutable_done()->set_output(setting_.output.path);
  }
  if (WorkerOf(event.name) == WorkerId{worker_event->worker()}) {
    HandleWorkerEvent(*worker_event);
  }
}

void TrainRun::HandleLog(const ProcessEvent& event) {
  if (!setting_.show_logs && !IsWarningOrError(event.text)) return;
  // A worker also logs the error that it reports as its last event. HandleExit shows this error.
  if (const auto worker = WorkerOf(event.name)) {
    const std::string& error = result_.record.workers()[worker->value].reason;
    if (!error.empty() && absl::StrContains(event.text, FirstLine(error))) return;
  }
  console_.Note(absl::StrCat(event.name, ": ", event.text));
}

void TrainRun::HandleWorkerEvent(const WorkerEvent& event) {
  result_.record.Apply(event);
  if (setting_.resume && event.has_joined() && !result_.resumed_step) HandleResume(event.joined());
  HandleDivergence(event);
  const WorkerEvent::Epoch& epoch = event.epoch();
  if (!epoch.has_test_loss()) return;
  if (setting_.summary != nullptr) setting_.summary->AddTest(result_.record, epoch);
  const bool has_accuracy = epoch.has_test_accuracy();
  console_.Note(absl::StrFormat("epoch %u: train loss %.4f, test %s %.4f (%s)", epoch.epoch(),
                                epoch.train_loss(), has_accuracy ? "accuracy" : "loss",
                                has_accuracy ? epoch.test_accuracy() : epoch.test_loss(),
                                NameOf(WorkerId{event.worker()})));
}

void TrainRun::HandleResume(const WorkerEvent::Joined& joined) {
  const uint64_t planned = joined.planned_steps();
  // Workers that wait for the others at the end of a run are ahead of its last step.
  result_.resumed_step = std::min(joined.step(), planned);
  if (joined.step() < planned) {
    console_.Note(absl::StrCat("going on from step ", joined.step()));
  } else {
    console_.Note(absl::StrCat("the run had already finished all ", planned,
                               " steps; more --epochs let it go on"));
  }
}

void TrainRun::HandleDivergence(const WorkerEvent& event) {
  if (result_.record.diverged().empty()) return;
  if (event.has_epoch() && !warned_of_divergence_) {
    warned_of_divergence_ = true;
    console_.Warning(absl::StrCat("diverged: ", result_.record.diverged()));
  }
  if (event.done().left_early()) {
    stopped_by_divergence_ = true;
    if (!stop_at_) stop_at_ = clock_.Now();
  }
}

void TrainRun::HandleExit(const ProcessEvent& event) {
  if (const auto server = ServerOf(event.name)) listening_[server->value] = false;
  if (!MayRestart(event)) return HandleLoss(event);
  const bool is_first = std::ranges::none_of(result_.record.restarts(), [&](const auto& restart) {
    return restart.process == event.name;
  });
  const absl::Duration delay = is_first ? absl::ZeroDuration() : setting_.restart_delay;
  delayed_restarts_[event.name] = {clock_.Now() + delay, event};
}

bool TrainRun::ending() const {
  return signal_ != 0 || kill_at_.has_value() || stopping_servers_ || stopped_by_divergence_ ||
         !result_.record.lost_servers().empty();
}

bool TrainRun::MayRestart(const ProcessEvent& exit) const {
  if (ending() || HadWrongSettings(exit.exit)) return false;
  if (result_.record.restarts().size() + delayed_restarts_.size() >= setting_.restarts)
    return false;
  if (const auto server = ServerOf(exit.name))
    return keeps_state() && !addresses_[server->value].empty();
  const auto worker = WorkerOf(exit.name);
  if (!worker) return false;
  if (worker->value >= target_workers_) return false;
  // A worker that has reported kDone has left the job.
  return !EndedInOrder(exit.exit) && result_.record.workers()[worker->value].state != State::kDone;
}

void TrainRun::StartDueProcesses() {
  const absl::Time now = clock_.Now();
  for (auto it = delayed_restarts_.begin(); it != delayed_restarts_.end();) {
    if (!ending() && now < it->second.due) {
      ++it;
      continue;
    }
    const ProcessEvent exit = std::move(it->second.exit);
    it = delayed_restarts_.erase(it);
    if (ending()) {
      HandleLoss(exit);
    } else {
      Restart(exit);
    }
  }
}

void TrainRun::StartAddedWorkers() {
  const absl::Time now = clock_.Now();
  if (calls_ == nullptr || ending() || running_workers() == 0 || now < next_target_) return;
  next_target_ = now + kTargetInterval;
  uint32_t target = target_workers_;
  for (const StatusReply& status : calls_->latest()) {
    if (status.server() == 0 && status.target_workers() > 0) target = status.target_workers();
  }
  calls_->AskStatus();
  if (target == target_workers_) return;
  console_.Note(absl::StrCat("workers ", target_workers_, " -> ", target));
  const uint32_t first = std::exchange(target_workers_, target);
  for (uint32_t w = first; w < target; ++w) {
    const std::string name = NameOf(WorkerId{w});
    // A removed worker may still be about to leave. The operator can repeat the command.
    if (processes_.running(name)) continue;
    if (const absl::Status started = Start(WorkerId{w}); !started.ok()) {
      Fail(std::string(started.message()));
      continue;
    }
    result_.record.WorkerAdded(WorkerId{w});
  }
}

void TrainRun::Restart(const ProcessEvent& exit) {
  const std::string end = EndOf(exit);
  const auto server = ServerOf(exit.name);
  const auto worker = WorkerOf(exit.name);
  const absl::Status started = server ? Start(*server) : Start(*worker);
  if (!started.ok()) {
    Fail(std::string(started.message()));
    return HandleLoss(exit);
  }
  if (server) {
    result_.record.ServerRestarted(*server, exit.exit);
  } else {
    result_.record.WorkerRestarted(*worker, exit.exit);
  }
  console_.Warning(absl::StrCat(exit.name, " ", end, "; started again (",
                                result_.record.restarts().size(), " of ", setting_.restarts,
                                " restarts)"));
}

void TrainRun::HandleLoss(const ProcessEvent& event) {
  if (const auto server = ServerOf(event.name); server && !stopping_servers_) {
    result_.record.ServerEnded(*server, event.exit);
    failures_.push_back(event.exit);
    Fail(absl::StrCat(event.name, " lost: ", ReasonOf(event)));
    if (running_workers() > 0 && !stop_at_) {
      // Workers report a lost server after `silence_seconds`. If servers keep their state, workers
      // wait longer, but this server does not come back.
      const absl::Duration report_time =
          keeps_state() ? absl::ZeroDuration()
                        : absl::Seconds(setting_.config.silence_seconds()) + kReportTime;
      stop_at_ = clock_.Now() + report_time;
    }
  }
  const auto worker = WorkerOf(event.name);
  if (!worker) return;
  gave_model_up_ |= event.exit.code == static_cast<int>(ExitCode::kIo);
  result_.record.WorkerEnded(*worker, event.exit, signal_ != 0 || stopped_by_divergence_);
  const WorkerRow& row = result_.record.workers()[worker->value];
  if (row.state != State::kLost) return;
  failures_.push_back(event.exit);
  const bool reported = row.reason != event.exit.ToString();
  // After a server was lost, the losses of the workers are its consequences. Workers that fail for
  // one reason report the same error.
  if (!result_.record.lost_servers().empty()) return;
  if (reported && !reported_reasons_.insert(row.reason).second) return;
  Fail(absl::StrCat(event.name, " lost: ", reported ? row.reason : ReasonOf(event)));
}

std::string TrainRun::ReasonOf(const ProcessEvent& event) const {
  const std::string line = processes_.LastLogLine(event.name);
  const std::string exit = event.exit.ToString();
  // HandleLog has shown a last line that is an error. The last line of a process that a signal
  // killed rarely names the reason.
  if (line.empty() || event.exit.signal != 0 || IsWarningOrError(line)) return exit;
  return absl::StrCat(exit, ": ", line);
}

std::string TrainRun::EndOf(const ProcessEvent& event) const {
  if (event.exit.signal != 0) return absl::StrCat("was killed by signal ", event.exit.signal);
  const auto worker = WorkerOf(event.name);
  const std::string error = worker ? result_.record.workers()[worker->value].reason : "";
  if (error.empty()) return absl::StrCat("ended with ", ReasonOf(event));
  return absl::StrCat("ended with ", event.exit.ToString(), ": ", SentenceOf(error));
}

void TrainRun::HandleSignal(int number) {
  if (signal_ != 0) {
    // A closed terminal and the end of a login may send SIGHUP after another signal.
    if (number == SIGHUP) return;
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
  console_.Progress(
      progress_.Line(result_.record, staleness, clock_.Now(), console_.progress_columns()));
  calls_->AskStatus();
}

void TrainRun::UpdateRecords() {
  next_records_ = clock_.Now() + kRecordsInterval;
  if (setting_.admin != nullptr) {
    setting_.admin->Update(result_.record,
                           calls_ == nullptr ? std::vector<StatusReply>() : calls_->latest());
  }
  UpdateSummary();
  if (calls_ != nullptr) calls_->AskStatus();
}

void TrainRun::UpdateSummary() {
  if (setting_.summary == nullptr || summary_failed_) return;
  ServerTotals totals;
  if (calls_ != nullptr) totals = TotalsOf(calls_->latest());
  setting_.summary->Update(result_.record, result_.totals.value_or(totals).staleness);
  const absl::Status flushed = setting_.summary->Flush();
  summary_failed_ = !flushed.ok();
  if (summary_failed_) {
    console_.Warning(absl::StrCat("TensorBoard: no figures from now on: ", flushed.message()));
  }
}

void TrainRun::Fail(const std::string& problem) {
  const std::string sentence = SentenceOf(problem);
  console_.Error(sentence);
  result_.problems.push_back(sentence);
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
  for (const WorkerRow& row : result_.record.workers()) {
    const std::string name = NameOf(row.worker);
    count += processes_.running(name) || delayed_restarts_.contains(name) ? 1 : 0;
  }
  return count;
}

}  // namespace thinwire
