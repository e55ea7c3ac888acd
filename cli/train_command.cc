#include "cli/train_command.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/state_dir.h"
#include "cli/trace_command.h"
#include "cli/train/report.h"
#include "cli/train/run_summary.h"
#include "cli/train/train_admin.h"
#include "cli/train/train_run.h"
#include "common/files/atomic_file.h"
#include "common/status_macros.h"
#include "common/time/clock.h"
#include "common/time/unix_clock.h"
#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"
#include "server/core/optimizer/schedule.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

ExitCode Fail(Console& console, const absl::Status& status, ExitCode code) {
  console.Error(std::string(status.message()));
  return code;
}

// Makes the writer of TensorBoard's event files; null if COMMAND wants none. CONFIG is accepted by CheckJob.
absl::StatusOr<std::unique_ptr<RunSummary>> MakeSummary(const TrainCommand& command,
                                                        const JobConfig& config, Clock& clock) {
  if (command.tensorboard.empty()) return nullptr;
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(config));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Make(job.schedule));
  return RunSummary::Create(command.tensorboard, schedule, clock);
}

// Merges the traces that the processes of a run have written in FOLDER.
absl::StatusOr<std::string> MergeRun(const std::string& folder, const std::string& path) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == kTraceEnding) files.push_back(entry.path().string());
  }
  ASSIGN_OR_RETURN(const MergedTrace merged, MergeTraces(files, path));
  return TextOf(merged, path);
}

}  // namespace

absl::StatusOr<JobConfig> JobOf(const std::string& config_file, const FieldFlags& flags,
                                FilesOf files, Console& console) {
  JobText text;
  if (!config_file.empty()) {
    ASSIGN_OR_RETURN(text, ReadJobFile(config_file));
  }
  RETURN_IF_ERROR(flags.Apply(text.config, text.places));
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(text.config, text.places));
  if (files == FilesOf::kThisMachine) {
    const std::vector<std::string> missing = MissingFiles(job.task, text.places);
    if (!missing.empty()) return absl::NotFoundError(absl::StrJoin(missing, "\n"));
  }
  for (const std::string& warning : WarningsOf(text.config, job, text.places))
    console.Warning(warning);
  return text.config;
}

absl::Status CheckOutputs(const TrainCommand& command, const JobConfig& config) {
  // Reports the errors before hours of training, not after.
  if (!config.report().empty()) {
    if (auto status = CheckReportPath(config.report()); !status.ok())
      return absl::Status(status.code(), absl::StrCat("report: ", status.message()));
  }
  if (!command.output.path.empty()) {
    if (auto status = CheckReplaceable(command.output.path); !status.ok())
      return absl::Status(status.code(), absl::StrCat("--output: ", status.message()));
  }
  if (!command.trace.empty()) {
    if (auto status = CheckReplaceable(command.trace); !status.ok())
      return absl::Status(status.code(), absl::StrCat("--trace: ", status.message()));
  }
  return absl::OkStatus();
}

ExitCode RunJob(const TrainCommand& command, TrainSetting setting, Signals& signals, TempDir& dir,
                Console& console, std::ostream& out) {
  const JobConfig config = setting.config;
  console.Note(command.verbose ? absl::StrCat("# the job\n", EffectiveText(config), "# the run")
                               : absl::StrCat("# the job; other settings have their defaults\n",
                                              ChangedText(config), "# the run"));
  SteadyClock clock;
  std::unique_ptr<TrainAdmin> admin;
  if (!command.admin.empty()) {
    auto started = TrainAdmin::Start(command.admin, config, clock);
    if (!started.ok()) return Fail(console, started.status(), ExitCodeOf(started.status()));
    admin = *std::move(started);
    console.Note(absl::StrCat("admin ", admin->address()));
  }
  UnixClock unix_clock;
  const auto summary = MakeSummary(command, config, unix_clock);
  if (!summary.ok()) {
    return Fail(console,
                absl::Status(summary.status().code(),
                             absl::StrCat("--tensorboard: ", summary.status().message())),
                ExitCode::kConfig);
  }
  setting.resume = command.resume;
  setting.restarts = command.restarts;
  setting.output = command.output;
  setting.admin = admin.get();
  setting.summary = summary->get();
  setting.trace = !command.trace.empty();
  TrainRun run(setting, signals, dir, console, clock);
  const ExitCode code = run.Run();
  // Without a step there are only problems, which are shown already.
  if (run.result().record.steps() > 0) out << ReportTable(run.result()) << std::flush;
  if (!command.state_dir.empty() && (code == ExitCode::kUnavailable || run.result().interrupted)) {
    console.Note(
        absl::StrCat("The run can go on from its state in ", command.state_dir, ": add --resume"));
  }
  if (!run.result().problems.empty()) {
    dir.Keep();
    console.Note(absl::StrCat("The logs of all processes are in ", dir.path()));
  }
  const absl::Status shown =
      out ? absl::OkStatus() : absl::UnavailableError("standard output: cannot be written");
  if (!config.report().empty()) {
    const absl::Status written = WriteReport(config.report(), ReportJson(run.result()));
    if (!written.ok()) return Fail(console, written, ExitCode::kUnavailable);
  }
  if (!command.trace.empty()) {
    const absl::StatusOr<std::string> merged = MergeRun(dir.path(), command.trace);
    if (!merged.ok()) return Fail(console, merged.status(), ExitCode::kUnavailable);
    console.Note(*merged);
  }
  if (!shown.ok()) return Fail(console, shown, ExitCode::kUnavailable);
  return code;
}

ExitCode RunTrain(const TrainCommand& command, const JobConfig& config, Console& console,
                  std::ostream& out) {
  const auto programs = FindPrograms(command.self, command.bin_dir);
  if (!programs.ok()) return Fail(console, programs.status(), ExitCode::kUnavailable);
  if (auto status = CheckOutputs(command, config); !status.ok())
    return Fail(console, status, ExitCode::kConfig);
  const auto signals = Signals::Block();
  if (!signals.ok()) return Fail(console, signals.status(), ExitCode::kUnavailable);
  const auto dir = TempDir::Make(command.temp_parent);
  if (!dir.ok()) return Fail(console, dir.status(), ExitCode::kUnavailable);
  TrainSetting setting;
  setting.config = config;
  setting.programs = *programs;
  setting.state_dir = command.state_dir;
  if (setting.state_dir.empty() && KeepsState(config) && !command.resume)
    setting.state_dir = (*dir)->PathOf("state");
  if (auto status = PrepareStateDir(setting.state_dir, command.resume, config); !status.ok())
    return Fail(console, status, ExitCode::kConfig);
  if (command.resume) {
    PosixFiles files;
    const absl::StatusOr<std::string> converted = FitState(files, setting.state_dir, config);
    if (!converted.ok()) return Fail(console, converted.status(), ExitCodeOf(converted.status()));
    if (!converted->empty()) console.Note(*converted);
  }
  return RunJob(command, std::move(setting), **signals, **dir, console, out);
}

}  // namespace thinwire
