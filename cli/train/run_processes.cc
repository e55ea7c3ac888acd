#include "cli/train/run_processes.h"

#include <google/protobuf/text_format.h>

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/process/command_lines.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

constexpr char kJobFile[] = "job.textproto";

}  // namespace

RunProcesses::RunProcesses(const TrainSetting& setting, Signals& signals, const TempDir& dir)
    : setting_(setting),
      dir_(dir),
      processes_(signals, dir.path()),
      addresses_(setting.config.servers()),
      listening_(setting.config.servers(), false) {}

absl::Status RunProcesses::WriteJob() {
  std::string text;
  google::protobuf::TextFormat::PrintToString(setting_.config, &text);
  return dir_.WriteFile(kJobFile, text);
}

absl::Status RunProcesses::Start(ServerId server) {
  if (setting_.hosts != nullptr) {
    return processes_.Start(NameOf(server), setting_.hosts->ServerCommand(server, addresses_),
                            SignalPath::kInput);
  }
  return StartHere(NameOf(server), ServerCommand(setting_.programs, dir_.PathOf(kJobFile), server,
                                                 addresses_, setting_.state_dir));
}

absl::Status RunProcesses::Start(WorkerId worker) {
  worker_count_ = std::max(worker_count_, worker.value + 1);
  if (setting_.hosts != nullptr) {
    ASSIGN_OR_RETURN(const std::vector<std::string> command,
                     setting_.hosts->WorkerCommand(worker, addresses_));
    return processes_.Start(NameOf(worker), command, SignalPath::kInput);
  }
  return StartHere(NameOf(worker), WorkerCommand(setting_.programs, dir_.PathOf(kJobFile), worker,
                                                 addresses_, setting_.output, setting_.state_dir));
}

absl::Status RunProcesses::StartHere(const std::string& name, std::vector<std::string> command) {
  if (setting_.trace) {
    command.insert(command.end(), {"--trace", dir_.PathOf(absl::StrCat(name, kTraceEnding))});
  }
  const std::vector<std::string> limits = LimitFlags(setting_.bandwidth);
  command.insert(command.end(), limits.begin(), limits.end());
  return processes_.Start(name, command);
}

void RunProcesses::Send(const RunSignal& signal) {
  switch (signal.to) {
    case RunSignal::To::kNobody:
      return;
    case RunSignal::To::kWorkers:
      for (uint32_t w = 0; w < worker_count_; ++w)
        processes_.Signal(NameOf(WorkerId{w}), signal.number);
      return;
    case RunSignal::To::kAll:
      return processes_.SignalAll(signal.number);
  }
}

std::string RunProcesses::ReasonOf(const ProcessEvent& exit) const {
  const std::string line = processes_.LastLogLine(exit.name);
  const std::string status = exit.exit.ToString();
  // A line that is an error was shown at once. The last line of a process that a signal killed
  // rarely names the reason.
  if (line.empty() || exit.exit.signal != 0 || IsWarningOrError(line)) return status;
  return absl::StrCat(status, ": ", line);
}

void RunProcesses::SetListening(ServerId server, const std::string& address) {
  addresses_[server.value] = address;
  listening_[server.value] = true;
}

std::optional<ServerId> RunProcesses::FirstSilent(ServerId first) const {
  for (uint32_t s = first.value; s < listening_.size(); ++s) {
    if (!listening_[s]) return ServerId{s};
  }
  return std::nullopt;
}

}  // namespace thinwire
