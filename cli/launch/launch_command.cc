#include "cli/launch/launch_command.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/checkpoint/state_dir.h"
#include "cli/hosts/hosts_file.h"
#include "cli/hosts/ssh_hosts.h"
#include "cli/launch/launch_staging.h"
#include "cli/launch/script_run.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/train/train_run.h"
#include "common/base/status_macros.h"
#include "common/files/read_file.h"
#include "common/time/clock.h"
#include "config/command_flags.h"
#include "config/connection_flags.h"
#include "config/field_flags.h"
#include "config/fields.h"
#include "config/job_text.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire launch --config job.textproto --hosts hosts.txt --credentials_from ca\n"
    "  thinwire launch --config job.textproto --hosts hosts.txt --insecure --copy\n"
    "  thinwire launch --config job.textproto --hosts h.txt --insecure -- --threads 4\n"
    "  thinwire launch --workers 4 --servers 2 train.py --epochs 2\n"
    "  thinwire launch --hosts hosts.txt --credentials_from ca train.py --epochs 2\n"
    "A line of the hosts file is a machine with its processes:\n"
    "  10.0.0.1 servers=1 port=7000\n"
    "  gpu-a servers=1 workers=2 device=cuda:0,cuda:1 data_dir=/data\n"
    "  me@gpu-b workers=1 address=10.0.0.3\n"
    "A Python program, NAME.py, runs on the machines of the hosts file, or without\n"
    "--hosts on this one. Before it are the flags, after it its own arguments.";

// Checks the flags that a run needs on other machines. Errors: InvalidArgument.
absl::Status CheckRemoteFlags(const LaunchCommand& command) {
  std::vector<std::string> given;
  if (!command.credentials_from.empty()) given.push_back("--credentials_from");
  if (!command.credentials.empty()) given.push_back("--credentials (or THINWIRE_CREDENTIALS)");
  if (command.insecure) given.push_back("--insecure");
  if (given.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--credentials_from: wrong number of flags (expected one of --credentials_from, "
        "--credentials and --insecure, got ",
        given.empty() ? "none" : absl::StrJoin(given, ", "), ")"));
  }
  // Each task of srun would start the run.
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks != nullptr && std::string_view(tasks) != "1" &&
      std::getenv("SLURM_PROCID") != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--hosts: not valid under srun with several tasks (expected 1 task, or a Python program "
        "without --hosts, which makes each task a worker; got ",
        tasks, " tasks)"));
  }
  if (command.copy && !command.remote_bin_dir.empty())
    return absl::InvalidArgumentError("--remote_bin_dir: not valid with --copy");
  return absl::OkStatus();
}

// Checks the flags that depend on each other. Errors: InvalidArgument.
absl::Status CheckFlags(const LaunchCommand& command, const JobConfig& config) {
  RETURN_IF_ERROR(CheckRemoteFlags(command));
  if (!command.work_dir.empty())
    return absl::InvalidArgumentError("--work_dir: only valid with a Python program (got none)");
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

// Checks the flags of a run with a Python program. Errors: InvalidArgument.
absl::Status CheckScriptFlags(const LaunchCommand& command) {
  RETURN_IF_ERROR(CheckRemoteFlags(command));
  RETURN_IF_ERROR(RatesOf(command.run.bandwidth).status());
  const TrainCommand& run = command.run;
  const TrainCommand defaults;
  for (const auto& [name, given] : {
           std::pair("--output", !run.output.path.empty()),
           std::pair("--restarts", run.restarts != defaults.restarts),
           std::pair("--verbose", run.verbose),
           std::pair("--admin", !run.admin.empty()),
           std::pair("--price_per_gb", run.bandwidth.price_per_gb != 0),
           std::pair("--tensorboard", !run.tensorboard.empty()),
       }) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": not valid with a Python program (expected none, got ",
                     command.script.front(), ")"));
  }
  if (run.resume && run.state_dir.empty())
    return absl::InvalidArgumentError("--resume: only valid with --state_dir (got none)");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Host>> ReadHosts(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadWholeFile(file);
  if (!text.ok()) return absl::NotFoundError(absl::StrCat("--hosts: ", text.status().message()));
  return ParseHosts(*text, file);
}

absl::StatusOr<std::vector<Host>> ReadHosts(const std::string& file, const JobConfig& config) {
  ASSIGN_OR_RETURN(std::vector<Host> hosts, ReadHosts(file));
  RETURN_IF_ERROR(CheckHostCounts(hosts, file, config.servers(), config.consistency().workers()));
  return hosts;
}

uint32_t SumOf(const std::vector<Host>& hosts, uint32_t Host::*count) {
  uint32_t sum = 0;
  for (const Host& host : hosts) sum += host.*count;
  return sum;
}

// Returns the part of a Python program's job that this machine knows: the job file, the flags, and
// the numbers of the hosts file. The program adds its own settings. Errors: InvalidArgument, also
// for flags of the task, which the program decides.
absl::StatusOr<JobConfig> ScriptJob(const LaunchCommand& command, const std::vector<Host>& hosts) {
  JobText job;
  if (!command.run.config_file.empty()) {
    ASSIGN_OR_RETURN(job, ReadJobFile(command.run.config_file));
  }
  RETURN_IF_ERROR(command.run.fields->Apply(job.config, job.places));
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    const auto place = job.places.find(field.name());
    if (field.path.front()->name() == "task" && place != job.places.end() &&
        !IsFilePlace(place->second)) {
      return absl::InvalidArgumentError(
          absl::StrCat(place->second, ": describes the task of the C++ worker (expected that the ",
                       "Python program chooses its model, data and number of steps, got a value)"));
    }
  }
  const uint32_t servers = SumOf(hosts, &Host::servers), workers = SumOf(hosts, &Host::workers);
  JobConfig& config = job.config;
  if (!config.has_servers()) config.set_servers(servers);
  if (!config.consistency().has_workers()) config.mutable_consistency()->set_workers(workers);
  RETURN_IF_ERROR(
      CheckHostCounts(hosts, command.hosts_file, config.servers(), config.consistency().workers()));
  if (servers == 0 || config.consistency().workers() != workers) {
    return absl::InvalidArgumentError(
        absl::StrCat(command.hosts_file, ": wrong sums (expected at least one server, and the ",
                     config.consistency().workers(), " workers of the job, got ", servers,
                     " servers and ", workers, " workers)"));
  }
  config.clear_task();
  return config;
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
  if (!command.script.empty()) {
    std::error_code ignored;  // the check on the machines reports a wrong folder
    setting.programs.worker.clear();
    setting.script = {.python = command.python,
                      .folder = command.work_dir.empty()
                                    ? std::filesystem::current_path(ignored).string()
                                    : command.work_dir,
                      .command = command.script};
  }
  setting.plaintext = command.insecure;
  setting.resume = command.run.resume;
  setting.state_dir = command.run.state_dir;
  setting.output = command.run.output;
  setting.worker_flags = command.worker_flags;
  setting.bandwidth = command.run.bandwidth;
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
  add_flag(
      "copy", command.copy,
      "Copies the programs server and worker of this machine, or server and the Python package, "
      "to the other ones, which need the same shared libraries");
  add("remote_bin_dir", command.remote_bin_dir,
      "The folder on each machine with the programs server and worker. Default: thinwire-server "
      "and thinwire-worker in the PATH",
      "DIR");
  add("remote_dir", command.remote_dir,
      "The folder on each machine in which the run makes its own folder. Default: /tmp", "DIR");
  add("work_dir", command.work_dir,
      "The folder on each machine in which a Python program runs. Default: the path of this folder",
      "DIR");
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

ExitCode Prepare(SshHosts& hosts, Console& console) {
  for (const std::string& line : hosts.Describe()) console.Note(line);
  const absl::Status prepared = hosts.Prepare();
  if (prepared.ok()) return ExitCode::kOk;
  if (!absl::IsCancelled(prepared)) return Fail(console, prepared, ExitCodeOf(prepared));
  return hosts.signal() == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
}

void RemoveFolders(SshHosts& hosts, Console& console) {
  if (const absl::Status removed = hosts.RemoveFolders(); !removed.ok())
    console.Warning(absl::StrCat("the folder of the run remains: ", removed.message()));
}

// Runs the Python program of the command line on the machines.
ExitCode RunScript(const LaunchCommand& command, Console& console, std::ostream& out) {
  if (auto status = CheckScriptFlags(command); !status.ok())
    return Fail(console, status, ExitCode::kUsage);
  const auto machines = ReadHosts(command.hosts_file);
  if (!machines.ok()) return Fail(console, machines.status(), ExitCode::kConfig);
  const auto job = ScriptJob(command, *machines);
  if (!job.ok()) return Fail(console, job.status(), ExitCode::kConfig);
  const auto signals = Signals::Block();
  if (!signals.ok()) return Fail(console, signals.status(), ExitCode::kUnavailable);
  const auto dir = TempDir::Make(command.run.temp_parent);
  if (!dir.ok()) return Fail(console, dir.status(), ExitCode::kUnavailable);
  if (auto status = StageHosts(command, *job, *machines, **dir, absl::Now()); !status.ok())
    return Fail(console, status, ExitCodeOf(status));

  SshHosts hosts(*machines, SettingOf(command), **signals, **dir);
  const absl::Cleanup remove_folders = [&] { RemoveFolders(hosts, console); };
  if (const ExitCode code = Prepare(hosts, console); code != ExitCode::kOk) return code;
  const ScriptRunSetting setting = {.servers = job->servers(),
                                    .workers = job->consistency().workers(),
                                    .certified_job = command.insecure ? "" : job->name(),
                                    .show_logs = command.show_logs};
  SteadyClock clock;
  return ScriptRun(setting, hosts, **signals, **dir, console, clock, out).Run();
}

}  // namespace

CLI::App* AddLaunch(CLI::App& app, LaunchCommand& command) {
  CLI::App* launch = CommandFlags(app).AddSubcommand(
      "launch",
      "Trains with servers and workers on other machines, over ssh, or with a Python program");
  AddRunFlags(*launch, command.run);
  AddLaunchFlags(*launch, command);
  command.run.fields.emplace(*launch);
  return launch;
}

ExitCode RunLaunch(const LaunchCommand& command, Console& console, std::ostream& out) {
  if (!command.script.empty()) return RunScript(command, console, out);
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
  if (auto status = StageHosts(command, config, *machines, **dir, absl::Now()); !status.ok())
    return Fail(console, status, ExitCodeOf(status));
  const auto credentials = OwnCredentials(command, config, **dir, absl::Now());
  if (!credentials.ok()) return Fail(console, credentials.status(), ExitCode::kConfig);

  SshHosts hosts(*machines, SettingOf(command), **signals, **dir);
  const uint32_t places = SumOf(*machines, &Host::workers);
  if (const uint32_t workers = config.consistency().workers(); places > workers) {
    console.Note(absl::StrCat("the job starts with ", workers,
                              " workers; thinwire scale starts the others"));
  }
  const absl::Cleanup remove_folders = [&] { RemoveFolders(hosts, console); };
  if (const ExitCode code = Prepare(hosts, console); code != ExitCode::kOk) return code;
  TrainSetting setting;
  setting.config = config;
  setting.hosts = &hosts;
  setting.credentials = *credentials;
  setting.state_dir = command.run.state_dir;
  setting.show_logs = command.show_logs;
  return RunJob(command.run, std::move(setting), **signals, **dir, console, out);
}

}  // namespace thinwire
