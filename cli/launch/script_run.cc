#include "cli/launch/script_run.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/process/command_lines.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

constexpr char kJobProcess[] = "job";  // waits for the job that worker 0 writes

// Returns the exit code of a shell for EXIT.
int ShellCode(const ExitStatus& exit) { return exit.signal != 0 ? 128 + exit.signal : exit.code; }

}  // namespace

ScriptRun::ScriptRun(const ScriptRunSetting& setting, const SshHosts& hosts, Signals& signals,
                     const TempDir& dir, Console& console, Clock& clock, std::ostream& out)
    : setting_(setting),
      hosts_(hosts),
      console_(console),
      clock_(clock),
      out_(out),
      processes_(signals, dir.path()),
      addresses_(setting.servers) {}

ExitCode ScriptRun::Run() {
  if (const absl::Status started = StartWorkers(); !started.ok()) Fail(started);
  while (!code_.has_value() && !workers_ended()) {
    const absl::Time now = clock_.Now();
    if (now >= listen_until_) {
      Fail(absl::UnavailableError(absl::StrCat(
          "servers: not all listen after ", absl::FormatDuration(setting_.start_timeout),
          " (expected \"listening HOST:PORT\" on their standard outputs)")));
      break;
    }
    for (const ProcessEvent& event : processes_.Wait(listen_until_ - now)) Handle(event);
  }
  Stop();
  return code_.value_or(ExitCode::kOk);
}

absl::Status ScriptRun::StartWorkers() {
  for (uint32_t w = 0; w < setting_.workers; ++w) {
    RETURN_IF_ERROR(processes_.Start(NameOf(WorkerId{w}), hosts_.ScriptCommand(WorkerId{w}),
                                     SignalPath::kInput));
  }
  return processes_.Start(kJobProcess, hosts_.JobCommand(), SignalPath::kInput);
}

absl::Status ScriptRun::StartServers() {
  ASSIGN_OR_RETURN(const JobText job, ParseJobText(job_, "the job of worker 0"));
  const std::string& name = job.config.name();
  if (!setting_.certified_job.empty() && name != setting_.certified_job) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: the certificates are of another job (expected ", setting_.certified_job,
                     ", got ", name, " from the program; --name ", name, " issues others)"));
  }
  if (job.config.servers() != setting_.servers) {
    return absl::InvalidArgumentError(
        absl::StrCat("servers: not the number of the hosts file (expected ", setting_.servers,
                     ", got ", job.config.servers(), " from the program)"));
  }
  drain_ = absl::Seconds(job.config.consistency().drain_seconds());
  // A server recovers its state before it listens.
  const absl::Duration recovery = job.config.recovery().has_durability()
                                      ? absl::Seconds(job.config.recovery().server_return_seconds())
                                      : absl::ZeroDuration();
  listen_until_ = clock_.Now() + std::max(setting_.start_timeout, recovery);
  for (uint32_t s = 1; s < setting_.servers; ++s) RETURN_IF_ERROR(Start(s));
  return setting_.servers == 1 ? Start(0) : absl::OkStatus();
}

absl::Status ScriptRun::Start(uint32_t server) {
  return processes_.Start(NameOf(ServerId{server}),
                          hosts_.ServerCommand(ServerId{server}, addresses_, job_),
                          SignalPath::kInput);
}

absl::Status ScriptRun::SendAddresses() {
  listen_until_ = absl::InfiniteFuture();
  console_.Note(absl::StrCat("servers ", absl::StrJoin(addresses_, ",")));
  size_t number = 0;
  for (const std::vector<std::string>& command : hosts_.AddressesCommands(addresses_)) {
    RETURN_IF_ERROR(processes_.Start(absl::StrCat("addresses ", number++), command));
  }
  return absl::OkStatus();
}

void ScriptRun::Stop() {
  stopping_ = true;
  SignalWorkers(SIGTERM);
  if (!HandleUntil([this] { return workers_ended(); }, drain_ + setting_.grace)) {
    SignalWorkers(SIGKILL);
  }
  const auto all_ended = [this] { return processes_.running_count() == 0; };
  processes_.SignalAll(SIGTERM);
  if (HandleUntil(all_ended, setting_.grace)) return;
  processes_.SignalAll(SIGKILL);
  HandleUntil(all_ended, absl::InfiniteDuration());
}

bool ScriptRun::HandleUntil(const std::function<bool()>& holds, absl::Duration time) {
  const absl::Time deadline = clock_.Now() + time;
  while (!holds() && clock_.Now() < deadline) {
    for (const ProcessEvent& event : processes_.Wait(deadline - clock_.Now())) Handle(event);
  }
  return holds();
}

void ScriptRun::SignalWorkers(int number) {
  for (uint32_t w = 0; w < setting_.workers; ++w) processes_.Signal(NameOf(WorkerId{w}), number);
}

void ScriptRun::Handle(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEvent::Kind::kLine:
      return HandleLine(event);
    case ProcessEvent::Kind::kLog:
      if (WorkerNamed(event.name)) return HandleLine(event);
      if (setting_.show_logs || IsWarningOrError(event.text))
        console_.Note(absl::StrCat(event.name, ": ", event.text));
      return;
    case ProcessEvent::Kind::kExit:
      return HandleExit(event);
    case ProcessEvent::Kind::kSignal:
      return HandleSignal(event.signal);
  }
}

void ScriptRun::HandleLine(const ProcessEvent& event) {
  if (event.name == kJobProcess) {
    absl::StrAppend(&job_, event.text, "\n");
  } else if (const auto server = ServerNamed(event.name)) {
    Listen(*server, event.text);
  } else {
    out_ << event.name << ": " << event.text << std::endl;
  }
}

void ScriptRun::Listen(ServerId server, const std::string& line) {
  const absl::StatusOr<std::string> address = ParseListening(line);
  if (!address.ok()) return console_.Note(absl::StrCat(NameOf(server), ": ", line));
  addresses_[server.value] = *address;
  if (stopping_) return;
  const auto silent = std::ranges::count(addresses_, "");
  absl::Status status;
  if (silent == 0) status = SendAddresses();
  if (silent == 1 && addresses_[0].empty()) status = Start(0);
  if (!status.ok()) Fail(status);
}

void ScriptRun::HandleExit(const ProcessEvent& event) {
  if (stopping_ || code_.has_value()) return;
  if (event.exit.ok() && event.name == kJobProcess) {
    if (const absl::Status started = StartServers(); !started.ok()) Fail(started);
    return;
  }
  if (event.exit.ok() && !ServerNamed(event.name)) return;
  // The workers' output is shown already.
  const std::string line = WorkerNamed(event.name) ? "" : processes_.LastLogLine(event.name);
  console_.Error(absl::StrCat(event.name, " ended with ", event.exit.ToString(),
                              line.empty() ? "" : ": ", line));
  const int code = ShellCode(event.exit);
  code_ = code == 0 ? ExitCode::kUnavailable : static_cast<ExitCode>(code);
}

void ScriptRun::HandleSignal(int number) {
  if (stopping_) {
    // A closed terminal and the end of a login may send SIGHUP after another signal.
    if (number != SIGHUP) processes_.SignalAll(SIGKILL);
    return;
  }
  if (!code_.has_value()) code_ = number == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
}

void ScriptRun::Fail(const absl::Status& status) {
  console_.Error(std::string(status.message()));
  code_ = ExitCodeOf(status);
}

bool ScriptRun::workers_ended() const {
  for (uint32_t w = 0; w < setting_.workers; ++w) {
    if (processes_.running(NameOf(WorkerId{w}))) return false;
  }
  return true;
}

}  // namespace thinwire
