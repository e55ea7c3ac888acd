#include "cli/train/train_run.h"

#include <signal.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "admin/job_summary.h"
#include "cli/process/command_lines.h"
#include "common/base/status_macros.h"
#include "config/connection_flags.h"
#include "proto/worker_event_json.h"

namespace thinwire {
namespace {

using State = WorkerRow::State;

constexpr absl::Duration kAnswerTimeout = absl::Seconds(30);
// After a server has failed, the workers have `silence_seconds` plus this time to report the
// failure.
constexpr absl::Duration kReportTime = absl::Seconds(10);
constexpr absl::Duration kTargetInterval = absl::Seconds(1);

RunTimes TimesOf(const TrainSetting& setting) {
  const JobConfig& job = setting.config;
  return {
      // Workers report a lost server after `silence_seconds`. If servers keep their state, workers
      // wait longer, but this server does not come back.
      .report = setting.keeps_state() ? absl::ZeroDuration()
                                      : absl::Seconds(job.silence_seconds()) + kReportTime,
      // A stopped worker first pushes its residual.
      .workers = absl::Seconds(job.consistency().drain_seconds()) + setting.grace,
      .servers = setting.grace};
}

}  // namespace

TrainRun::TrainRun(const TrainSetting& setting, Signals& signals, const TempDir& dir,
                   Console& console, Clock& clock)
    : setting_(setting),
      console_(console),
      clock_(clock),
      state_(TimesOf(setting_)),
      processes_(setting_, signals, dir),
      restarts_(setting.restarts, setting.restart_delay),
      display_(setting_, console, clock),
      problems_(console),
      result_{.config = setting.config,
              .price_per_gb = setting.bandwidth.price_per_gb,
              .record = RunRecord(setting.config.consistency().workers()),
              .totals = std::nullopt,
              .parameters_crc32c = std::nullopt,
              .resumed_step = std::nullopt,
              .problems = {},
              .interrupted = false},
      target_workers_(setting.config.consistency().workers()),
      next_target_(clock.Now()),
      raised_to_(setting.config.consistency().workers()) {}

ExitCode TrainRun::Run() {
  absl::Status started = StartServers();
  if (started.ok() && problems_.list().empty() && !state_.ending()) {
    Connect();
    console_.Note(absl::StrCat("servers ", absl::StrJoin(processes_.addresses(), ",")));
    started = StartWorkers();
    if (started.ok()) {
      Watch([this] { return running_workers() == 0; }, absl::InfiniteFuture());
      AwaitServers(ServerId{0});
    }
  }
  console_.ClearProgress();
  problems_.Add(started);
  if (result_.record.CountOf(State::kDiverged) > 0) {
    problems_.Add(absl::StrCat("diverged: ", result_.record.diverged()));
  }
  ObtainModel();
  if (result_.record.steps() > 0 && result_.record.lost_servers().empty() &&
      state_.stop_signal() == 0)
    AskServers();
  const ServerTotals latest =
      TotalsOf(calls_ == nullptr ? std::vector<StatusReply>() : calls_->latest());
  display_.WriteSummary(result_.record, result_.totals.value_or(latest).staleness);
  // A stopping server waits until its peers close their connections, and no thread of this process
  // serves an idle connection.
  calls_.reset();
  processes_.Send(state_.StopServers(clock_.Now()));
  Watch([this] { return processes_.running_count() == 0; }, absl::InfiniteFuture());
  result_.problems = problems_.list();
  result_.interrupted = state_.stop_signal() != 0;
  return code();
}

absl::Status TrainRun::StartServers() {
  RETURN_IF_ERROR(processes_.WriteJob());
  for (uint32_t i = 1; i < setting_.config.servers(); ++i)
    RETURN_IF_ERROR(processes_.Start(ServerId{i}));
  AwaitServers(ServerId{1});
  if (!problems_.list().empty() || state_.ending()) return absl::OkStatus();
  RETURN_IF_ERROR(processes_.Start(ServerId{0}));
  AwaitServers(ServerId{0});
  return absl::OkStatus();
}

absl::Status TrainRun::StartWorkers() {
  for (uint32_t i = 0; i < setting_.config.consistency().workers(); ++i) {
    const absl::Status status = processes_.Start(WorkerId{i});
    if (!status.ok()) {
      processes_.Send({RunSignal::To::kAll, SIGTERM});
      return status;
    }
  }
  return absl::OkStatus();
}

void TrainRun::Connect() {
  calls_ = std::make_unique<ServerCalls>(processes_.addresses(),
                                         setting_.credentials.value_or(Credentials()));
}

void TrainRun::AwaitServers(ServerId first) {
  const auto done = [&] {
    return !processes_.FirstSilent(first).has_value() || !result_.record.lost_servers().empty() ||
           state_.stop_signal() != 0;
  };
  absl::Duration timeout = setting_.start_timeout;
  if (setting_.keeps_state()) {
    // A server recovers its state before it listens.
    timeout = std::max(timeout, absl::Seconds(setting_.config.recovery().server_return_seconds()));
  }
  Watch(done, clock_.Now() + timeout);
  if (done()) return;
  problems_.Add(absl::StrCat(NameOf(*processes_.FirstSilent(first)), ": not listening after ",
                             absl::FormatDuration(timeout),
                             " (expected \"listening HOST:PORT\" on its standard output)"));
}

void TrainRun::ObtainModel() {
  const std::string flag = absl::StrCat("--output: ", setting_.output.path, ": ");
  if (outcome_.gave_model_up) {
    problems_.Add(absl::StrCat(
        flag, "not written, because the worker was stopped before the file system let it"));
  }
  const bool diverged = code() == ExitCode::kDiverged;
  if ((code() != ExitCode::kOk && !diverged) || setting_.output.path.empty()) return;
  const WorkerRow* writer = result_.record.writer();
  absl::Status status;
  if (writer == nullptr) {
    if (diverged) return;
    status = absl::NotFoundError("not written, because the evaluating worker was lost");
  } else if (setting_.hosts != nullptr) {
    status = setting_.hosts->FetchModel(writer->worker);
    if (absl::IsCancelled(status)) state_.StopSignal(setting_.hosts->signal(), clock_.Now());
  }
  if (status.ok()) return;
  outcome_.model_is_missing = true;
  problems_.Add(absl::StrCat(flag, status.message()));
}

absl::Duration TrainRun::MastersTime(const std::vector<StatusReply>& statuses) const {
  const absl::StatusOr<BandwidthRates> rates = RatesOf(setting_.bandwidth);
  if (!rates.ok() || rates->up == 0) return absl::ZeroDuration();
  uint64_t value_count = 0;
  for (const StatusReply& status : statuses) value_count += ValueCountOf(status);
  return absl::Seconds(static_cast<double>(value_count * sizeof(float)) / rates->up);
}

void TrainRun::AskServers() {
  auto statuses = calls_->Status(kAnswerTimeout);
  if (!statuses.ok()) return problems_.Add(statuses.status());
  result_.totals = TotalsOf(*statuses);
  if (const auto& shards = result_.totals->saturated_shards; !shards.empty()) {
    problems_.Add(absl::StrCat("parameters or optimizer slots reached the largest float in shards ",
                               absl::StrJoin(shards, ", ")));
  }
  const bool sealed =
      std::all_of(statuses->begin(), statuses->end(), [](const auto& s) { return s.sealed(); });
  if (!sealed) return;  // before the first Join, a server has no parameters
  const auto crc = calls_->MastersCrc32c(*statuses, kAnswerTimeout + MastersTime(*statuses));
  if (!crc.ok()) return problems_.Add(crc.status());
  result_.parameters_crc32c = *crc;
}

template <typename Done>
void TrainRun::Watch(Done done, absl::Time deadline) {
  while (true) {
    StartDueProcesses();
    StartAddedWorkers();
    if (done()) return;
    const absl::Time now = clock_.Now();
    if (now >= deadline) return;
    const RunSignal signal = state_.Tick(now);
    if (signal.to == RunSignal::To::kAll) {
      console_.Warning(absl::StrCat(processes_.running_count(), " processes did not stop within ",
                                    absl::FormatDuration(setting_.grace), "; killing them"));
    }
    processes_.Send(signal);
    display_.Update(result_.record, calls_.get(), running_workers() > 0);
    absl::Time until = std::min({deadline, state_.deadline(), display_.next(), restarts_.next()});
    if (CanGrow()) until = std::min(until, next_target_);
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
  if (const auto server = ServerNamed(event.name)) {
    const auto address = ParseListening(event.text);
    if (address.ok()) {
      processes_.SetListening(*server, *address);
      // After a restart, the channels to the ended process may wait before they connect again. New
      // channels connect at once.
      if (calls_ != nullptr) Connect();
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
  if (WorkerNamed(event.name) == WorkerId{worker_event->worker()}) {
    HandleWorkerEvent(*worker_event);
  }
}

void TrainRun::HandleLog(const ProcessEvent& event) {
  if (!setting_.show_logs && !IsWarningOrError(event.text)) return;
  // A worker also logs the error that it reports as its last event. HandleLoss shows this error.
  if (const auto worker = WorkerNamed(event.name)) {
    const std::string& error = result_.record.workers()[worker->value].reason;
    if (!error.empty() && absl::StrContains(event.text, error.substr(0, error.find('\n')))) return;
  }
  console_.Note(absl::StrCat(event.name, ": ", event.text));
}

void TrainRun::HandleWorkerEvent(const WorkerEvent& event) {
  result_.record.Apply(event);
  if (setting_.resume && event.has_joined() && !result_.resumed_step) HandleResume(event.joined());
  HandleDivergence(event);
  if (event.epoch().has_test_loss()) display_.ShowTest(result_.record, event);
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
  if (event.done().left_early()) state_.Diverge(clock_.Now());
}

void TrainRun::HandleSignal(int number) {
  const bool is_first = state_.stop_signal() == 0;
  const RunSignal signal = state_.StopSignal(number, clock_.Now());
  if (is_first) {
    console_.Note(
        absl::StrCat(number == SIGINT ? "interrupted" : "terminated", ": stopping the workers"));
  } else if (signal.to == RunSignal::To::kAll) {
    console_.Warning("second signal: killing all processes");
  }
  processes_.Send(signal);
}

void TrainRun::HandleExit(const ProcessEvent& exit) {
  if (const auto server = ServerNamed(exit.name)) processes_.SetSilent(*server);
  if (!MayRestart(exit) || !restarts_.Plan(exit, clock_.Now())) HandleLoss(exit);
}

bool TrainRun::MayRestart(const ProcessEvent& exit) const {
  if (state_.ending() || HadWrongSettings(exit.exit)) return false;
  if (const auto server = ServerNamed(exit.name))
    return setting_.keeps_state() && !processes_.addresses()[server->value].empty();
  const auto worker = WorkerNamed(exit.name);
  if (!worker || worker->value >= target_workers_) return false;
  // A worker that has reported kDone has left the job.
  return !EndedInOrder(exit.exit) && result_.record.workers()[worker->value].state != State::kDone;
}

void TrainRun::StartDueProcesses() {
  const absl::Time due = state_.ending() ? absl::InfiniteFuture() : clock_.Now();
  for (const ProcessEvent& exit : restarts_.TakeDue(due)) {
    if (state_.ending()) {
      HandleLoss(exit);
    } else {
      Restart(exit);
    }
  }
}

void TrainRun::Restart(const ProcessEvent& exit) {
  const std::string end = EndOf(exit);
  const auto server = ServerNamed(exit.name);
  const auto worker = WorkerNamed(exit.name);
  const absl::Status started = server ? processes_.Start(*server) : processes_.Start(*worker);
  if (!started.ok()) {
    problems_.Add(started);
    return HandleLoss(exit);
  }
  restarts_.SetStarted(exit.name);
  if (server) {
    result_.record.ServerRestarted(*server, exit.exit);
  } else {
    result_.record.WorkerRestarted(*worker, exit.exit);
  }
  console_.Warning(absl::StrCat(exit.name, " ", end, "; started again (", restarts_.started_count(),
                                " of ", setting_.restarts, " restarts)"));
}

void TrainRun::StartAddedWorkers() {
  const absl::Time now = clock_.Now();
  if (!CanGrow() || now < next_target_) return;
  next_target_ = now + kTargetInterval;
  uint32_t target = target_workers_;
  for (const StatusReply& status : calls_->latest()) {
    if (status.server() != 0 || status.target_workers() == 0) continue;
    target = status.target_workers();
    RaiseWorkers(status);
  }
  calls_->AskStatus();
  if (target == target_workers_) return;
  console_.Note(absl::StrCat("workers ", target_workers_, " -> ", target));
  const uint32_t first = std::exchange(target_workers_, target);
  for (uint32_t w = first; w < target; ++w) {
    // A removed worker may still be about to leave. The operator can repeat the command.
    if (processes_.runs(WorkerId{w})) continue;
    if (const absl::Status started = processes_.Start(WorkerId{w}); !started.ok()) {
      problems_.Add(started);
      return;  // the next process would probably fail, too
    }
    result_.record.WorkerAdded(WorkerId{w});
  }
}

void TrainRun::RaiseWorkers(const StatusReply& lead) {
  if (setting_.grow_to == 0) return;
  if (const auto scaled = calls_->TakeScaled()) {
    const absl::Status& status = scaled->status;
    // A lead that did not answer may be started again.
    const bool answered = !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
    if (answered) raised_to_ = std::max(raised_to_, scaled->workers);
    if (answered && !status.ok()) {
      console_.Warning(absl::StrCat("the number of workers stays: ", status.message()));
    }
  }
  const uint32_t wish = std::min(lead.wished_workers(), setting_.grow_to);
  if (wish > std::max(raised_to_, lead.target_workers())) calls_->AskScale(wish);
}

void TrainRun::HandleLoss(const ProcessEvent& exit) {
  if (const auto server = ServerNamed(exit.name)) HandleLoss(*server, exit);
  if (const auto worker = WorkerNamed(exit.name)) HandleLoss(*worker, exit);
}

void TrainRun::HandleLoss(ServerId server, const ProcessEvent& exit) {
  if (state_.phase() == RunState::Phase::kStoppingServers) return;
  result_.record.ServerEnded(server, exit.exit);
  outcome_.had_wrong_config |= exit.exit.code == static_cast<int>(ExitCode::kConfig);
  problems_.Add(absl::StrCat(exit.name, " lost: ", processes_.ReasonOf(exit)));
  state_.LoseServer(running_workers() > 0, clock_.Now());
}

void TrainRun::HandleLoss(WorkerId worker, const ProcessEvent& exit) {
  outcome_.gave_model_up |= exit.exit.code == static_cast<int>(ExitCode::kIo);
  result_.record.WorkerEnded(worker, exit.exit, state_.stops_workers());
  const WorkerRow& row = result_.record.workers()[worker.value];
  if (row.state != State::kLost) return;
  outcome_.had_wrong_config |= exit.exit.code == static_cast<int>(ExitCode::kConfig);
  // After a server was lost, the losses of the workers are its consequences.
  if (!result_.record.lost_servers().empty()) return;
  if (row.reason != exit.exit.ToString()) return problems_.AddReported(exit.name, row.reason);
  problems_.Add(absl::StrCat(exit.name, " lost: ", processes_.ReasonOf(exit)));
}

std::string TrainRun::EndOf(const ProcessEvent& exit) const {
  if (exit.exit.signal != 0) return absl::StrCat("was killed by signal ", exit.exit.signal);
  const auto worker = WorkerNamed(exit.name);
  const std::string error = worker ? result_.record.workers()[worker->value].reason : "";
  if (error.empty()) return absl::StrCat("ended with ", processes_.ReasonOf(exit));
  return absl::StrCat("ended with ", exit.exit.ToString(), ": ", SentenceOf(error));
}

uint32_t TrainRun::running_workers() const {
  uint32_t count = 0;
  for (const WorkerRow& row : result_.record.workers()) {
    count += processes_.runs(row.worker) || restarts_.plans(NameOf(row.worker)) ? 1 : 0;
  }
  return count;
}

}  // namespace thinwire
