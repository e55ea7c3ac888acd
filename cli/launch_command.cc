#include "cli/launch_command.h"

#include <google/protobuf/text_format.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/certs_command.h"
#include "cli/launch/hosts_file.h"
#include "cli/launch/ssh_hosts.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/state_dir.h"
#include "cli/train/train_run.h"
#include "common/files/read_file.h"
#include "common/status_macros.h"
#include "common/tls/identity.h"
#include "config/command_flags.h"
#include "config/field_flags.h"
#include "proto/grpc_credentials.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire launch --config job.textproto --hosts hosts.txt --credentials_from ca\n"
    "  thinwire launch --config job.textproto --hosts hosts.txt --insecure --copy\n"
    "  thinwire launch --config job.textproto --hosts h.txt --insecure -- --threads 4\n"
    "  thinwire launch --workers 4 --servers 2 train.py --epochs 2\n"
    "A line of the hosts file is a machine with its processes:\n"
    "  10.0.0.1 servers=1 port=7000\n"
    "  gpu-a servers=1 workers=2 device=cuda:0,cuda:1 data_dir=/data\n"
    "  me@gpu-b workers=1 address=10.0.0.3\n"
    "A Python program, NAME.py, runs on this machine. Before it are --workers,\n"
    "--servers, --config, --state_dir and settings of the job, after it its own\n"
    "arguments.";

// Checks the flags that depend on each other. Errors: InvalidArgument.
absl::Status CheckFlags(const LaunchCommand& command, const JobConfig& config) {
  const int given = (command.credentials_from.empty() ? 0 : 1) +
                    (command.credentials.empty() ? 0 : 1) + (command.insecure ? 1 : 0);
  if (given != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--credentials_from: wrong number of flags (expected one of --credentials_from, "
        "--credentials and --insecure, got ",
        given, ")"));
  }
  if (command.copy && !command.remote_bin_dir.empty())
    return absl::InvalidArgumentError("--remote_bin_dir: not valid with --copy");
  if (!command.worker_flags.empty() && !command.worker_flags.front().starts_with("-")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", command.worker_flags.front(),
                     "\": not a flag (expected --NAME, or flags of the "
                     "workers after --)"));
  }
  const bool keeps_state = KeepsState(config);
  if (keeps_state == command.run.state_dir.empty()) {
    return absl::InvalidArgumentError(
        keeps_state
            ? "--state_dir: missing (expected a folder on each machine, because the job has "
              "durability: checkpoint or log)"
            : "--state_dir: only valid with durability: checkpoint or log (got durability: "
              "none)");
  }
  if (command.run.resume && !keeps_state)
    return absl::InvalidArgumentError("--resume: only valid with --state_dir (got none)");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Host>> ReadHosts(const std::string& file, const JobConfig& config) {
  const absl::StatusOr<std::string> text = ReadWholeFile(file);
  if (!text.ok()) return absl::NotFoundError(absl::StrCat("--hosts: ", text.status().message()));
  ASSIGN_OR_RETURN(std::vector<Host> hosts, ParseHosts(*text, file));
  RETURN_IF_ERROR(CheckHostCounts(hosts, file, config.servers(), config.consistency().workers()));
  return hosts;
}

absl::Status Link(const fs::path& target, const fs::path& link) {
  std::error_code error;
  fs::create_directories(link.parent_path(), error);
  if (!error) fs::create_symlink(fs::absolute(target), link, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(link.string(), ": ", error.message()));
}

// Makes the credentials folder of a process at LINK: a new one of the authority, or a link to the
// folder of the process in --credentials.
absl::Status StageCredentials(const LaunchCommand& command, const Identity& identity,
                              const fs::path& link) {
  const std::string role(RoleName(identity.role));
  if (command.credentials_from.empty()) {
    const fs::path folder(command.credentials);
    const std::string name =
        identity.number.has_value() ? absl::StrCat(role, "-", *identity.number) : role;
    const bool shared = identity.role == Role::kWorker && !fs::exists(folder / name);
    const fs::path source = folder / (shared ? role : name);
    // Reports a missing or a wrong certificate before any process starts.
    RETURN_IF_ERROR(Credentials::Load(source.string(), identity).status());
    return Link(source, link);
  }
  IssueOptions options;
  options.authority_dir = command.credentials_from;
  options.role = role;
  options.job = identity.job;
  if (identity.role == Role::kServer) options.server = identity.number;
  if (identity.role == Role::kWorker) options.worker = identity.number;
  options.out = link.string();
  std::error_code ignored;  // a folder that does not exist fails below
  fs::create_directories(link.parent_path(), ignored);
  std::ostringstream message, error;
  if (IssueCredentials(options, absl::Now(), message, error) == ExitCode::kOk) {
    return absl::OkStatus();
  }
  std::string text = error.str();
  if (text.ends_with('\n')) text.pop_back();
  return absl::InvalidArgumentError(absl::StrCat("--credentials_from: ", text));
}

// Makes the folders DIR/host-N that SshHosts::Prepare() copies.
absl::Status StageHosts(const LaunchCommand& command, const JobConfig& config,
                        const std::vector<Host>& hosts, const TempDir& dir) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  RETURN_IF_ERROR(dir.WriteFile("job.textproto", text));
  Programs programs;
  if (command.copy) {
    ASSIGN_OR_RETURN(programs, FindPrograms(command.run.self, command.run.bin_dir));
  }
  uint32_t server = 0, worker = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const fs::path folder = dir.PathOf(absl::StrCat("host-", i));
    RETURN_IF_ERROR(Link(dir.PathOf("job.textproto"), folder / "job.textproto"));
    if (command.copy) {
      RETURN_IF_ERROR(Link(programs.server, folder / "bin/server"));
      RETURN_IF_ERROR(Link(programs.worker, folder / "bin/worker"));
    }
    const uint32_t server_end = server + hosts[i].servers, worker_end = worker + hosts[i].workers;
    for (; server < server_end; ++server) {
      if (command.insecure) continue;
      RETURN_IF_ERROR(StageCredentials(command, {Role::kServer, config.name(), server},
                                       folder / absl::StrCat("credentials/server-", server)));
    }
    for (; worker < worker_end; ++worker) {
      if (command.insecure) continue;
      RETURN_IF_ERROR(StageCredentials(command, {Role::kWorker, config.name(), worker},
                                       folder / absl::StrCat("credentials/worker-", worker)));
    }
  }
  return absl::OkStatus();
}

// Returns the credentials with which this process reads the status of the servers.
absl::StatusOr<Credentials> OwnCredentials(const LaunchCommand& command, const JobConfig& config,
                                           const TempDir& dir) {
  if (command.insecure) return Credentials();
  const Identity viewer = {Role::kViewer, config.name(), std::nullopt};
  const std::string folder = dir.PathOf("viewer");
  RETURN_IF_ERROR(StageCredentials(command, viewer, folder));
  return Credentials::Load(folder, viewer);
}

SshSetting SettingOf(const LaunchCommand& command) {
  SshSetting setting;
  setting.ssh = absl::StrSplit(command.ssh, ' ', absl::SkipEmpty());
  setting.remote_dir = command.remote_dir;
  if (!command.remote_bin_dir.empty()) {
    setting.programs = {.server = command.remote_bin_dir + "/server",
                        .worker = command.remote_bin_dir + "/worker"};
  } else if (!command.copy) {
    setting.programs = {.server = "thinwire-server", .worker = "thinwire-worker"};
  }
  setting.plaintext = command.insecure;
  setting.resume = command.run.resume;
  setting.state_dir = command.run.state_dir;
  setting.output = command.run.output;
  setting.worker_flags = command.worker_flags;
  return setting;
}

// Adds the flags that only `thinwire launch` has.
void AddLaunchFlags(CLI::App& app, LaunchCommand& command) {
  CommandFlags flags(app);
  const auto add = [&flags](const std::string& name, auto& value, const char* help,
                            const char* type) {
    return flags.Add("--" + name, value, help)
        .Type(type)
        .Group("Launch")
        .Environment(EnvironmentName(name));
  };
  const auto add_flag = [&flags](const std::string& name, bool& value, const char* help) {
    flags.AddSwitch("--" + name, value, help).Group("Launch").Environment(EnvironmentName(name));
  };
  add("hosts", command.hosts_file, "The machines, one per line, with their processes (see below)",
      "FILE");
  add("credentials_from", command.credentials_from,
      "The folder of an authority (thinwire certs init). It issues a certificate for each process "
      "of the run, valid for 90 days",
      "DIR");
  add("credentials", command.credentials,
      "A folder with one credentials folder per process (server-0, worker-0 or worker) and with "
      "viewer",
      "DIR");
  add_flag("insecure", command.insecure,
           "Trains without credentials. Everybody who reaches the ports can read and change the "
           "model");
  add_flag("copy", command.copy,
           "Copies the programs server and worker of this machine to the other ones, which need "
           "the same shared libraries");
  add("remote_bin_dir", command.remote_bin_dir,
      "The folder on each machine with the programs server and worker. Default: thinwire-server "
      "and thinwire-worker in the PATH",
      "DIR");
  add("remote_dir", command.remote_dir,
      "The folder on each machine in which the run makes its own folder. Default: /tmp", "DIR");
  add("ssh", command.ssh, "The ssh client with its flags, such as \"ssh -p 2222\". Default: ssh",
      "COMMAND");
  add_flag("logs", command.show_logs,
           "Shows every line of the processes' logs. Default: warnings and errors");
  flags.Get("--state_dir")
      .Description(
          "With durability: checkpoint or log, the folder on each machine in which its processes "
          "keep "
          "their state. It must be empty, except with --resume");
  flags.Get("--bin_dir")
      .Description(
          "With --copy, the folder of the programs server and worker on this machine. Default: "
          "beside "
          "this program");
  flags.Add("WORKER_FLAGS", command.worker_flags, "Flags of all workers, after --");
  flags.Footer(kExamples);
}

}  // namespace

CLI::App* AddLaunch(CLI::App& app, LaunchCommand& command) {
  CLI::App* launch = CommandFlags(app).AddSubcommand(
      "launch",
      "Trains with servers and workers on other machines, over ssh, or runs a Python program");
  AddRunFlags(*launch, command.run);
  AddLaunchFlags(*launch, command);
  command.run.fields.emplace(*launch);
  return launch;
}

ExitCode RunLaunch(const LaunchCommand& command, Console& console, std::ostream& out) {
  if (command.hosts_file.empty()) {
    const auto missing = absl::InvalidArgumentError(
        "--hosts: missing (expected a file with machines, or a Python program such as train.py, "
        "got neither)");
    return Fail(console, missing, ExitCode::kUsage);
  }
  const auto job =
      JobOf(command.run.config_file, *command.run.fields, FilesOf::kOtherMachines, console);
  if (!job.ok()) return Fail(console, job.status(), ExitCode::kConfig);
  const JobConfig& config = *job;
  if (auto status = CheckFlags(command, config); !status.ok())
    return Fail(console, status, ExitCode::kUsage);
  if (auto status = CheckOutputs(command.run, config); !status.ok())
    return Fail(console, status, ExitCode::kConfig);
  const auto machines = ReadHosts(command.hosts_file, config);
  if (!machines.ok()) return Fail(console, machines.status(), ExitCode::kConfig);
  const auto signals = Signals::Block();
  if (!signals.ok()) return Fail(console, signals.status(), ExitCode::kUnavailable);
  const auto dir = TempDir::Make(command.run.temp_parent);
  if (!dir.ok()) return Fail(console, dir.status(), ExitCode::kUnavailable);
  if (auto status = StageHosts(command, config, *machines, **dir); !status.ok())
    return Fail(console, status, ExitCodeOf(status));
  const auto credentials = OwnCredentials(command, config, **dir);
  if (!credentials.ok()) return Fail(console, credentials.status(), ExitCode::kConfig);

  SshHosts hosts(*machines, SettingOf(command), **signals, **dir);
  for (const std::string& line : hosts.Describe()) console.Note(line);
  const auto worker_count = [](uint32_t sum, const Host& host) { return sum + host.workers; };
  const uint32_t places =
      std::accumulate(machines->begin(), machines->end(), uint32_t{0}, worker_count);
  if (const uint32_t workers = config.consistency().workers(); places > workers) {
    console.Note(absl::StrCat("the job starts with ", workers,
                              " workers; thinwire scale starts the others"));
  }
  const absl::Cleanup remove_folders = [&hosts, &console] {
    if (const absl::Status removed = hosts.RemoveFolders(); !removed.ok()) {
      console.Warning(absl::StrCat("the folder of the run remains: ", removed.message()));
    }
  };
  if (const absl::Status prepared = hosts.Prepare(); !prepared.ok()) {
    if (!absl::IsCancelled(prepared)) return Fail(console, prepared, ExitCodeOf(prepared));
    return hosts.signal() == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
  }
  TrainSetting setting;
  setting.config = config;
  setting.hosts = &hosts;
  setting.credentials = *credentials;
  setting.state_dir = command.run.state_dir;
  setting.show_logs = command.show_logs;
  return RunJob(command.run, std::move(setting), **signals, **dir, console, out);
}

}  // namespace thinwire
