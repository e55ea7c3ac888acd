#include "cli/hosts/ssh_hosts.h"

#include <signal.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"

namespace thinwire {
namespace {

constexpr char kJobFile[] = "job.textproto";
constexpr char kModelFile[] = "model.safetensors";
constexpr char kProgramJobFile[] = "program.textproto";
constexpr char kAddressesFile[] = "addresses";

// Runs its arguments as a program, as the comment of ssh_hosts.h describes. The first shell in the
// background must not keep the output open, because the connection ends when all copies are closed.
constexpr char kSupervise[] = R"(exec 3<&0
"$@" </dev/null 3<&- &
program=$!
{
  while read -r signal; do kill -s "$signal" "$program"; done
  kill -s KILL "$program"
} <&3 3<&- >/dev/null 2>&1 &
reader=$!
exec 3<&-
wait "$program"
code=$?
kill "$reader"
exit "$code")";

// Sends the folder $1 to the standard input of the command that follows. Other users of the machine
// cannot read the files.
constexpr char kSend[] = R"(tar -C "$1" --mode=go= -chf - . | { shift; exec "$@"; })";

// Writes the output of the command that follows to the file $1.
constexpr char kReceive[] = R"(file=$1; shift; exec "$@" >"$file")";

// Checks that a Python program can run: $1 is its folder, $2 its interpreter, $3 its file, $4 a folder
// with the package or "".
constexpr char kCheckScript[] = R"sh(fail() { echo "$1" >&2; exit 69; }
cd "$1" 2>/dev/null ||
  fail "no folder $1 (expected the folder in which the program runs; --work_dir names another one)"
command -v "$2" >/dev/null ||
  fail "no Python interpreter $2 (expected python3, or its path in THINWIRE_PYTHON)"
[ -f "$3" ] || fail "no program $3 (expected it in $1)"
[ -z "$4" ] || export PYTHONPATH="$4${PYTHONPATH:+:$PYTHONPATH}"
problem=$("$2" -c 'import thinwire' 2>&1) ||
  fail "no Python package thinwire (expected its wheel, or --copy): ${problem##*
}")sh";

// Runs a command as one of $2 workers on a machine, in the folder $1. $3 is a folder with the package
// or "". Threads share the machine as on one that runs all workers (python/package/launch.py).
constexpr char kRunScript[] = R"sh(cd "$1" || exit 78
[ -z "$3" ] || export PYTHONPATH="$3${PYTHONPATH:+:$PYTHONPATH}"
threads=$(($(nproc) / $2))
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}"
shift 3
exec "$@")sh";

// Waits for the file $1 and prints it.
constexpr char kAwaitFile[] = R"sh(until [ -e "$1" ]; do sleep 0.1; done; cat "$1")sh";

// Writes the text $1 to the file $2, which appears as a whole.
constexpr char kWriteFile[] = R"sh(printf %s "$1" >"$2.tmp" && mv "$2.tmp" "$2")sh";

// Writes the text $1 to the file $2 and runs the command that follows.
constexpr char kRunWithFile[] = R"sh(printf %s "$1" >"$2" || exit 74; shift 2; exec "$@")sh";

std::string Joined(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    out->append(ShellQuoted(word));
  });
}

// Returns a text such as "server 0" or "workers 2-4"; "" if COUNT is 0.
std::string Range(const std::string& kind, uint32_t first, uint32_t count) {
  if (count == 0) return "";
  if (count == 1) return absl::StrCat(kind, " ", first);
  return absl::StrCat(kind, "s ", first, "-", first + count - 1);
}

}  // namespace

std::string ShellQuoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

SshHosts::SshHosts(std::vector<Host> hosts, SshSetting setting, Signals& signals,
                   const TempDir& dir)
    : hosts_(std::move(hosts)), setting_(std::move(setting)), signals_(signals), dir_(dir) {}

SshHosts::Seat SshHosts::SeatOf(uint32_t Host::*count, uint32_t number) const {
  size_t host = 0;
  while (host < hosts_.size() && number >= hosts_[host].*count) number -= hosts_[host++].*count;
  return {host, number};
}

std::string SshHosts::FolderOf(size_t host) const {
  const std::string run = std::filesystem::path(dir_.path()).filename().string();
  return absl::StrCat(setting_.remote_dir, "/", run, ".", host);
}

Programs SshHosts::ProgramsOf(size_t host) const {
  if (!setting_.programs.server.empty()) return setting_.programs;
  const std::string folder = absl::StrCat(FolderOf(host), "/bin/");
  return {.server = folder + "server", .worker = folder + "worker"};
}

std::vector<std::string> SshHosts::Ssh(size_t host, const std::string& script) const {
  std::vector<std::string> command = {"/usr/bin/env"};
  command.insert(command.end(), setting_.ssh.begin(), setting_.ssh.end());
  // A password cannot be typed. A connection that is silent for a minute ends.
  command.insert(command.end(), {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                                 "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4",
                                 hosts_[host].name, script});
  return command;
}

std::vector<std::string> SshHosts::Supervised(size_t host,
                                              const std::vector<std::string>& command) const {
  std::vector<std::string> words = {"sh", "-c", kSupervise, "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return Ssh(host, absl::StrCat("exec ", Joined(words)));
}

std::vector<std::string> SshHosts::ServerCommand(ServerId server,
                                                 std::vector<std::string> addresses,
                                                 const std::string& job) const {
  const Seat seat = SeatOf(&Host::servers, server.value);
  const Host& host = hosts_[seat.host];
  const std::string folder = FolderOf(seat.host);
  std::string& own = addresses[server.value];
  if (own.empty()) {
    own = absl::StrCat(host.address, ":", host.port == 0 ? 0 : host.port + seat.position);
  }
  const std::string job_file = job.empty()
                                   ? absl::StrCat(folder, "/", kJobFile)
                                   : absl::StrCat(folder, "/server-", server.value, ".textproto");
  std::vector<std::string> command = thinwire::ServerCommand(
      ProgramsOf(seat.host), job_file, server, std::move(addresses), setting_.state_dir);
  if (setting_.plaintext) {
    command.push_back("--insecure");
  } else {
    command.insert(command.end(),
                   {"--credentials", absl::StrCat(folder, "/credentials/server-", server.value)});
  }
  const std::vector<std::string> limits = LimitFlags(setting_.bandwidth);
  command.insert(command.end(), limits.begin(), limits.end());
  if (!job.empty())
    command.insert(command.begin(), {"sh", "-c", kRunWithFile, "sh", job, job_file});
  return Supervised(seat.host, command);
}

absl::StatusOr<std::vector<std::string>> SshHosts::WorkerCommand(
    WorkerId worker, const std::vector<std::string>& addresses) const {
  const Seat seat = SeatOf(&Host::workers, worker.value);
  if (seat.host == hosts_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(worker),
                     ": no machine (expected a place in the hosts file, got none); start it with "
                     "worker --worker ",
                     worker.value));
  }
  const Host& host = hosts_[seat.host];
  const std::string folder = FolderOf(seat.host);
  OutputFile output = setting_.output;
  if (!output.path.empty()) output.path = absl::StrCat(folder, "/", kModelFile);
  std::vector<std::string> command =
      thinwire::WorkerCommand(ProgramsOf(seat.host), absl::StrCat(folder, "/", kJobFile), worker,
                              addresses, output, setting_.state_dir);
  if (setting_.plaintext) {
    command.push_back("--insecure");
  } else {
    command.insert(command.end(),
                   {"--credentials", absl::StrCat(folder, "/credentials/worker-", worker.value)});
  }
  if (!host.devices.empty()) {
    command.insert(command.end(), {"--device", host.devices[seat.position % host.devices.size()]});
  }
  if (!host.data_dir.empty()) command.insert(command.end(), {"--data_dir", host.data_dir});
  const std::vector<std::string> limits = LimitFlags(setting_.bandwidth);
  command.insert(command.end(), limits.begin(), limits.end());
  command.insert(command.end(), setting_.worker_flags.begin(), setting_.worker_flags.end());
  return Supervised(seat.host, command);
}

std::vector<std::string> SshHosts::ScriptCommand(WorkerId worker) const {
  const Seat seat = SeatOf(&Host::workers, worker.value);
  const Host& host = hosts_[seat.host];
  const std::string folder = FolderOf(seat.host);
  const SshScript& script = *setting_.script;
  uint32_t workers = 0;
  for (const Host& each : hosts_) workers += each.workers;
  std::vector<std::string> command = {"sh",
                                      "-c",
                                      kRunScript,
                                      "sh",
                                      script.folder,
                                      absl::StrCat(host.workers),
                                      PackageOf(seat.host),
                                      "env",
                                      "PYTHONUNBUFFERED=1"};
  const auto set = [&command](const char* name, const std::string& value) {
    command.push_back(absl::StrCat("THINWIRE_", name, "=", value));
  };
  set("WORKER", absl::StrCat(worker.value));
  set("WORKERS", absl::StrCat(workers));
  set("CONFIG", absl::StrCat(folder, "/", kJobFile));
  set("ADDRESSES_FILE", absl::StrCat(folder, "/", kAddressesFile));
  if (worker == WorkerId{0}) set("WRITE_JOB", absl::StrCat(folder, "/", kProgramJobFile));
  if (setting_.plaintext) {
    set("INSECURE", "1");
  } else {
    set("CREDENTIALS", absl::StrCat(folder, "/credentials/worker-", worker.value));
  }
  if (!setting_.state_dir.empty()) set("STATE_DIR", setting_.state_dir);
  if (!host.devices.empty()) set("DEVICE", host.devices[seat.position % host.devices.size()]);
  if (!host.data_dir.empty()) set("DATA_DIR", host.data_dir);
  if (!setting_.bandwidth.uplink.empty()) set("UPLINK", setting_.bandwidth.uplink);
  if (!setting_.bandwidth.downlink.empty()) set("DOWNLINK", setting_.bandwidth.downlink);
  command.push_back(script.python);
  command.insert(command.end(), script.command.begin(), script.command.end());
  return Supervised(seat.host, command);
}

std::vector<std::string> SshHosts::JobCommand() const {
  const size_t host = SeatOf(&Host::workers, 0).host;
  return Supervised(
      host, {"sh", "-c", kAwaitFile, "sh", absl::StrCat(FolderOf(host), "/", kProgramJobFile)});
}

std::vector<std::vector<std::string>> SshHosts::AddressesCommands(
    const std::vector<std::string>& addresses) const {
  std::vector<std::vector<std::string>> commands;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].workers == 0) continue;
    const std::string file = absl::StrCat(FolderOf(i), "/", kAddressesFile);
    commands.push_back(
        Ssh(i, Joined({"sh", "-c", kWriteFile, "sh", absl::StrJoin(addresses, ","), file})));
  }
  return commands;
}

std::string SshHosts::PackageOf(size_t host) const {
  return setting_.programs.server.empty() ? absl::StrCat(FolderOf(host), "/python") : "";
}

std::string SshHosts::ScriptCheck(size_t host) const {
  if (!setting_.script.has_value() || hosts_[host].workers == 0) return "";
  const SshScript& script = *setting_.script;
  return absl::StrCat("; ",
                      Joined({"sh", "-c", kCheckScript, "sh", script.folder, script.python,
                              script.command.front(), PackageOf(host)}),
                      " || { rm -rf ", ShellQuoted(FolderOf(host)), "; exit ",
                      static_cast<int>(ExitCode::kUnavailable), "; }");
}

std::string SshHosts::StateCheck(size_t host) const {
  if (setting_.state_dir.empty() || hosts_[host].servers == 0) return "";
  const std::string state = ShellQuoted(setting_.state_dir);
  const int code = static_cast<int>(ExitCode::kConfig);
  if (!setting_.resume) {
    return absl::StrFormat(
        "if [ -n \"$(ls -A %s 2>/dev/null)\" ]; then echo \"--state_dir: not empty (expected an "
        "empty folder, or --resume, got\" %s\")\" >&2; exit %d; fi; ",
        state, state, code);
  }
  uint32_t first = 0;
  for (size_t i = 0; i < host; ++i) first += hosts_[i].servers;
  std::string script;
  for (uint32_t server = first; server < first + hosts_[host].servers; ++server) {
    const std::string folder = ShellQuoted(absl::StrCat(setting_.state_dir, "/server-", server));
    absl::StrAppendFormat(&script,
                          "if [ ! -d %s ]; then echo \"--resume: no state of an earlier run "
                          "(expected the folder\" %s\", got none)\" >&2; exit %d; fi; ",
                          folder, folder, code);
  }
  return script;
}

absl::Status SshHosts::Prepare() {
  std::map<size_t, std::vector<std::string>> commands;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const std::string folder = ShellQuoted(FolderOf(i));
    std::string script = "set -e; umask 077; ";
    absl::StrAppend(&script, StateCheck(i));
    const Programs programs = ProgramsOf(i);
    for (const auto& [program, count] : {std::pair(programs.server, hosts_[i].servers),
                                         std::pair(programs.worker, hosts_[i].workers)}) {
      if (count == 0 || setting_.programs.server.empty() || program.empty()) continue;
      absl::StrAppendFormat(
          &script,
          "if ! command -v %s >/dev/null; then echo \"no program\" %s\" (expected --copy, "
          "--remote_bin_dir or an installed thinwire)\" >&2; exit %d; fi; ",
          ShellQuoted(program), ShellQuoted(program), static_cast<int>(ExitCode::kUnavailable));
    }
    absl::StrAppendFormat(&script,
                          "mkdir -p %s; mkdir %s; tar -C %s -xof - || { rm -rf %s; exit %d; }",
                          ShellQuoted(setting_.remote_dir), folder, folder, folder,
                          static_cast<int>(ExitCode::kUnavailable));
    absl::StrAppend(&script, ScriptCheck(i));
    commands[i] = {"/bin/sh", "-c", kSend, "sh", dir_.PathOf(absl::StrCat("host-", i))};
    const std::vector<std::string> ssh = Ssh(i, absl::StrCat("exec sh -c ", ShellQuoted(script)));
    commands[i].insert(commands[i].end(), ssh.begin(), ssh.end());
  }
  for (size_t i = 0; i < hosts_.size(); ++i) folders_.insert(i);
  const absl::Status status = RunAll(commands);
  for (size_t host : refused_) folders_.erase(host);
  return status;
}

absl::Status SshHosts::FetchModel(WorkerId worker) {
  const size_t host = SeatOf(&Host::workers, worker.value).host;
  const absl::Status status = CopyModel(host);
  if (status.ok()) return status;
  has_model_ = host;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; the worker's file stays on ",
                                   hosts_[host].name, ": ", FolderOf(host), "/", kModelFile));
}

absl::Status SshHosts::CopyModel(size_t host) {
  AtomicFile file(setting_.output.path);
  RETURN_IF_ERROR(file.status());
  std::vector<std::string> command = {"/bin/sh", "-c", kReceive, "sh", file.temporary()};
  const std::vector<std::string> ssh =
      Ssh(host, absl::StrCat("cat ", ShellQuoted(absl::StrCat(FolderOf(host), "/", kModelFile))));
  command.insert(command.end(), ssh.begin(), ssh.end());
  RETURN_IF_ERROR(RunAll({{host, command}}));
  return file.Commit();
}

absl::Status SshHosts::RemoveFolders() {
  std::map<size_t, std::vector<std::string>> commands;
  for (size_t host : folders_) {
    const std::string folder = ShellQuoted(FolderOf(host));
    std::string script = absl::StrCat("rm -rf ", folder);
    if (host == has_model_) {
      script = absl::StrCat("if test -e ", folder, "/", kModelFile, "; then find ", folder,
                            " -mindepth 1 -maxdepth 1 ! -name ", kModelFile,
                            " -exec rm -rf {} +; else ", script, "; fi");
    }
    commands[host] = Ssh(host, script);
  }
  return RunAll(commands);
}

absl::Status SshHosts::RunAll(const std::map<size_t, std::vector<std::string>>& commands) {
  ProcessSet processes(signals_, dir_.path());
  const auto name_of = [](size_t host) { return absl::StrCat("host ", host); };
  for (const auto& [host, command] : commands) {
    RETURN_IF_ERROR(processes.Start(name_of(host), command));
  }
  signal_ = 0;
  refused_.clear();
  std::map<std::string, ExitStatus> exits;
  while (processes.running_count() > 0) {
    for (const ProcessEvent& event : processes.Wait(absl::InfiniteDuration())) {
      if (event.kind == ProcessEvent::Kind::kExit) exits[event.name] = event.exit;
      if (event.kind != ProcessEvent::Kind::kSignal) continue;
      signal_ = event.signal;
      processes.SignalAll(SIGKILL);
    }
  }
  if (signal_ != 0) return absl::CancelledError("interrupted");
  std::vector<std::string> problems;
  bool wrong_setting = false;
  for (const auto& [host, command] : commands) {
    const ExitStatus exit = exits[name_of(host)];
    if (exit.ok()) continue;
    refused_.insert(host);
    wrong_setting = wrong_setting || exit.code == static_cast<int>(ExitCode::kConfig);
    const std::string line = processes.LastLogLine(name_of(host));
    problems.push_back(absl::StrCat(hosts_[host].place, ": ", hosts_[host].name, ": ",
                                    line.empty() ? exit.ToString() : line));
  }
  if (problems.empty()) return absl::OkStatus();
  const std::string text = absl::StrJoin(problems, "\n");
  return wrong_setting ? absl::InvalidArgumentError(text) : absl::UnavailableError(text);
}

std::vector<std::string> SshHosts::Describe() const {
  std::vector<std::string> lines;
  uint32_t server = 0, worker = 0;
  for (const Host& host : hosts_) {
    const std::string servers = Range("server", server, host.servers);
    const std::string workers = Range("worker", worker, host.workers);
    lines.push_back(absl::StrCat(host.name, ": ", servers,
                                 servers.empty() || workers.empty() ? "" : ", ", workers));
    server += host.servers;
    worker += host.workers;
  }
  return lines;
}

}  // namespace thinwire
