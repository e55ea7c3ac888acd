// laboratory: runs the experiments of experiment files, in virtual time or with real processes.
// `thinwire experiment run` starts it. It is a program of its own because it needs LibTorch.
#include <glog/logging.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/time/clock.h"
#include "common/version/version.h"
#include "config/help.h"
#include "config/job.h"
#include "config/man_page.h"
#include "experiments/cluster/run.h"
#include "experiments/efficiency/efficiency_table.h"
#include "experiments/plan/experiment_file.h"
#include "experiments/plan/real_run.h"
#include "experiments/plan/results.h"
#include "experiments/plan/runner.h"
#include "experiments/plan/tasks.h"
#include "experiments/replay/imposed_staleness.h"
#include "experiments/replay/recording.h"
#include "experiments/replay/replay.h"
#include "experiments/replay/replay_plan.h"
#include "server/durable/files.h"
#include "worker/models/factory.h"
#include "worker/process/termination.h"

namespace thinwire::lab {
namespace {

struct Flags {
  std::string file;       // run
  std::string state_dir;  // replay
  bool payloads = false;
  std::vector<std::string> set;
  std::string out;
  PlanOptions plan;
  uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  bool real = false;
};

void AddThreads(CLI::App& command, Flags& flags) {
  command
      .add_option("--threads", flags.threads,
                  "The threads that compute gradients. Default: one per processor core")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 1024));
}

void AddFlags(CLI::App& run, Flags& flags) {
  run.add_option("FILE", flags.file, "The experiment file (proto/experiment.proto)")->required();
  run.add_option("--out", flags.out, "The folder for the results. Default: out/NAME")
      ->type_name("DIR");
  run.add_flag("--quick", flags.plan.quick, "Runs the small version that the file describes");
  run.add_flag("--real", flags.real, "Runs real processes instead of simulated ones");
  run.add_option("--only", flags.plan.only, "Leaves out the other settings of the axis")
      ->type_name("AXIS=SETTING");
  run.add_option("--seeds", flags.plan.seeds, "The number of seeds. Default: that of the file")
      ->type_name("COUNT");
  AddThreads(run, flags);
}

void AddReplayFlags(CLI::App& replay, Flags& flags) {
  replay
      .add_option("STATE_DIR", flags.state_dir,
                  "The state directory of a run with durability: log and keep_log: true")
      ->required();
  replay.add_option("--out", flags.out, "The folder for the results. Default: out/replay")
      ->type_name("DIR");
  replay
      .add_option("--set", flags.set,
                  "A setting of the job in the changed run. May be given several times")
      ->type_name("FIELD=VALUE");
  replay.add_flag("--payloads", flags.payloads,
                  "Keeps the recorded gradients; only the servers are changed");
  AddThreads(replay, flags);
}

// Returns the folder of this program.
std::filesystem::path OwnFolder() {
  std::error_code ignored;
  return std::filesystem::canonical("/proc/self/exe", ignored).parent_path();
}

// Returns the first of PATHS that exists. Errors: NotFound with all paths.
absl::StatusOr<std::string> FindFile(const std::string& name,
                                     const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path.string();
    texts.push_back(path.lexically_normal().string());
  }
  return absl::NotFoundError(
      absl::StrCat(name, ": not found (expected ", absl::StrJoin(texts, " or "), ")"));
}

absl::StatusOr<std::string> FindThinwire() {
  const std::filesystem::path folder = OwnFolder();
  return FindFile("thinwire",
                  {folder / "../cli/thinwire", folder / "thinwire", folder / "../bin/thinwire"});
}

absl::StatusOr<std::string> FindReport() {
  const std::filesystem::path folder = OwnFolder();
  return FindFile("report.py",
                  {folder / "laboratory.runfiles/thinwire/experiments/report/report.py",
                   folder / "report/report.py", folder / "../share/thinwire/report/report.py"});
}

absl::Status CheckFiles(const Plan& plan) {
  std::set<std::string> missing;
  for (const PlannedRun& run : plan.runs) {
    if (run.spec.machines.has_synthetic()) continue;
    for (const std::string& line : MissingFiles(run.spec.job.task)) missing.insert(line);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrJoin(missing, "\n"));
}

// Removes the runs that real processes cannot do, and names their cases.
void RemoveSimulatedRuns(Plan& plan, Console& console) {
  std::set<std::string> lines;
  std::erase_if(plan.runs, [&](const PlannedRun& run) {
    const absl::Status status = CheckReal(run.spec);
    if (status.ok()) return false;
    const std::string line = absl::StrCat("not run: ", CaseName(plan.experiment, run.settings),
                                          ": ", std::string(status.message()));
    if (lines.insert(line).second) console.Note(line);
    return true;
  });
}

RunnerParts VirtualParts(TaskSource& tasks, const Termination& termination) {
  return {
      .run = [&tasks](const RunSpec& spec, const RunControl& control) -> absl::StatusOr<RunResult> {
        ASSIGN_OR_RETURN(const MakeLearningTask make, tasks.TasksOf(spec));
        if (spec.machines.exchange() == Machines::Exchange::servers) {
          return spec.machines.has_imposed_staleness() ? RunImposedStaleness(spec, make, control)
                                                       : RunParameterServer(spec, make, control);
        }
        return RunPeers(spec, make, control);
      },
      .identity = [&tasks](const RunSpec& spec) -> absl::StatusOr<std::string> {
        ASSIGN_OR_RETURN(const uint64_t content, tasks.ContentHashOf(spec));
        return absl::StrCat("virtual ", std::string(BuildVersion()), " ",
                            std::string(BuildRevision()), " ", content);
      },
      .stopped = [&termination] { return termination.requested(); }};
}

RunnerParts ReplayParts(const Recording& recording, ReplayOf what, TaskSource& tasks,
                        const Termination& termination) {
  RunnerParts parts = VirtualParts(tasks, termination);
  parts.run = [&recording, what, &tasks](const RunSpec& spec,
                                         const RunControl& control) -> absl::StatusOr<RunResult> {
    ASSIGN_OR_RETURN(const MakeLearningTask make, tasks.TasksOf(spec));
    return RunReplay(recording, what, spec, make, control);
  };
  parts.identity = [virtual_identity = parts.identity, what, recorded = IdentityOf(recording)](
                       const RunSpec& spec) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const std::string identity, virtual_identity(spec));
    return absl::StrCat(what == ReplayOf::kPayloads ? "payloads " : "gradients ", recorded, " ",
                        identity);
  };
  return parts;
}

RunnerParts RealParts(const RealRunOptions& options, Termination& termination) {
  return {.run = [options, &termination](
                     const RunSpec& spec,
                     const RunControl&) { return RunReal(spec, options, termination); },
          .identity = [](const RunSpec&) -> absl::StatusOr<std::string> {
            return absl::StrCat("real ", std::string(BuildVersion()), " ",
                                std::string(BuildRevision()));
          },
          .stopped = [&termination] { return termination.requested(); }};
}

absl::Status WriteEfficiency(const Experiment& experiment, const std::string& folder) {
  if (!experiment.has_efficiency()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<EfficiencyRow> rows, EfficiencyRows(experiment.efficiency()));
  std::string table = "network,workers,method,source,efficiency,step_seconds\n";
  for (const EfficiencyRow& row : rows) {
    absl::StrAppend(&table, row.network, ",", row.workers, ",", row.method, ",", row.source, ",",
                    ExactNumber(row.efficiency), ",", ExactNumber(row.step_seconds), "\n");
  }
  return WriteText(folder + "/efficiency.csv", table);
}

absl::Status RunExperiment(const Flags& flags, Plan& plan, Termination& termination,
                           Console& console) {
  RETURN_IF_ERROR(CheckFiles(plan));
  SteadyClock clock;
  const RunnerOptions options = {.folder = flags.out, .threads = flags.threads};
  if (flags.real) {
    RemoveSimulatedRuns(plan, console);
    if (plan.runs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flags.file, ": no run is left for --real (expected at least 1, got 0)"));
    }
    ASSIGN_OR_RETURN(const std::string thinwire, FindThinwire());
    const RunnerParts parts =
        RealParts({.thinwire = thinwire, .folder = flags.out + "/real"}, termination);
    return RunPlan(plan, options, parts, clock, console);
  }
  UseThreads(1);
  TaskSource tasks;
  RETURN_IF_ERROR(RunPlan(plan, options, VirtualParts(tasks, termination), clock, console));
  return WriteEfficiency(plan.experiment, flags.out);
}

absl::Status Replay(const Flags& flags, const Termination& termination, Console& console) {
  PosixFiles files;
  ASSIGN_OR_RETURN(const Recording recording, ReadRecording(files, flags.state_dir));
  ASSIGN_OR_RETURN(const Plan plan, PlanReplay(recording, flags.set));
  RETURN_IF_ERROR(CheckFiles(plan));
  UseThreads(1);
  TaskSource tasks;
  SteadyClock clock;
  const ReplayOf what = flags.payloads ? ReplayOf::kPayloads : ReplayOf::kGradients;
  return RunPlan(plan, {.folder = flags.out, .threads = flags.threads},
                 ReplayParts(recording, what, tasks, termination), clock, console);
}

// Replaces this process by the program that writes report.html.
ExitCode Report(const std::string& folder, Console& console) {
  const absl::StatusOr<std::string> report = FindReport();
  if (!report.ok()) {
    console.Warning(std::string(report.status().message()));
    console.Note(absl::StrCat(folder, ": has the tables, but no report.html"));
    return ExitCode::kOk;
  }
  // Debian's Python, which has the package python3-matplotlib.
  constexpr char kPython[] = "/usr/bin/python3";
  execl(kPython, kPython, report->c_str(), folder.c_str(), nullptr);
  console.Error(absl::StrCat(kPython, ": cannot be started: ", strerror(errno)));
  return ExitCode::kUnavailable;
}

ExitCode Main(int argc, char** argv) {
  Termination termination;
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  CLI::App app("thinwire laboratory: runs experiments in virtual time.", "laboratory");
  SetHelpFormat(app, TerminalColumns(STDOUT_FILENO));
  app.set_version_flag("--version", VersionText("thinwire laboratory"));
  AddManFlag(app, "thinwire-laboratory");
  app.require_subcommand(1);
  app.footer(
      "Example:\n"
      "  laboratory run experiments/staleness.textproto --out out/staleness --quick\n"
      "  laboratory replay state --out out/replay --set learning_rate=0.01\n"
      "Exit codes: 0 done, 64 usage, 69 unavailable, 75 stopped by a signal (the same command goes "
      "on), 78 configuration.");
  CLI::App* run = app.add_subcommand("run", "Runs an experiment and writes its tables and report");
  CLI::App* replay =
      app.add_subcommand("replay", "Replays a recorded run, as it was and with changed settings");
  Flags flags;
  AddFlags(*run, flags);
  AddReplayFlags(*replay, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const size_t columns = std::max<size_t>(2, TerminalColumns(STDERR_FILENO));
  Console console(std::cerr, {.terminal = terminal, .columns = columns});
  absl::Status status;
  if (replay->parsed()) {
    if (flags.out.empty()) flags.out = "out/replay";
    status = Replay(flags, termination, console);
  } else {
    absl::StatusOr<Plan> plan = ReadExperiment(flags.file, flags.plan);
    if (!plan.ok()) {
      console.Error(std::string(plan.status().message()));
      return ExitCode::kConfig;
    }
    if (flags.out.empty()) flags.out = "out/" + plan->experiment.name();
    status = RunExperiment(flags, *plan, termination, console);
  }
  if (absl::IsCancelled(status)) {
    console.Note("stopped; the same command goes on with the other runs");
    return ExitCode::kPreempted;
  }
  if (!status.ok()) {
    console.Error(std::string(status.message()));
    return ExitCodeOf(status);
  }
  return Report(flags.out, console);
}

}  // namespace
}  // namespace thinwire::lab

int main(int argc, char** argv) { return static_cast<int>(thinwire::lab::Main(argc, argv)); }
