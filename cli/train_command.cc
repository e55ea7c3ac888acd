#include "cli/train_command.h"

#include <cerrno>
#include <fstream>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/launch.h"
#include "cli/process_set.h"
#include "cli/report.h"
#include "cli/temp_dir.h"
#include "cli/train_run.h"
#include "common/clock.h"
#include "common/status_macros.h"
#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

// Returns an error if the report cannot be written. Called before the run, so that the error is
// reported before hours of training, not after.
absl::Status CheckReportPath(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream out(path, std::ios::app);
  if (!out)
    return absl::ErrnoToStatus(errno, absl::StrCat("report: ", path, ": cannot be written"));
  return absl::OkStatus();
}

ExitCode Fail(Console& console, const absl::Status& status, ExitCode code) {
  console.Error(std::string(status.message()));
  return code;
}

}  // namespace

absl::StatusOr<JobConfig> JobOf(const std::string& config_file, const FieldFlags& flags) {
  JobText text;
  if (!config_file.empty()) {
    ASSIGN_OR_RETURN(text, ReadJobFile(config_file));
  }
  RETURN_IF_ERROR(flags.Apply(text.config, text.places));
  RETURN_IF_ERROR(CheckJob(text.config, text.places).status());
  return text.config;
}

ExitCode RunTrain(const TrainCommand& command, const JobConfig& config, Console& console,
                  std::ostream& out) {
  const auto programs = FindPrograms(command.self, command.bin_dir);
  if (!programs.ok()) return Fail(console, programs.status(), ExitCode::kUnavailable);
  if (auto status = CheckReportPath(config.report()); !status.ok())
    return Fail(console, status, ExitCode::kConfig);
  const auto signals = Signals::Block();
  if (!signals.ok()) return Fail(console, signals.status(), ExitCode::kUnavailable);
  const auto dir = TempDir::Make(command.temp_parent);
  if (!dir.ok()) return Fail(console, dir.status(), ExitCode::kUnavailable);

  console.Note(absl::StrCat("# the job, with its defaults\n", EffectiveText(config), "# the run"));
  SteadyClock clock;
  TrainSetting setting;
  setting.config = config;
  setting.programs = *programs;
  TrainRun run(setting, **signals, **dir, console, clock);
  const ExitCode code = run.Run();
  out << ReportTable(run.result()) << std::flush;
  const absl::Status shown =
      out ? absl::OkStatus() : absl::UnavailableError("standard output: cannot be written");
  if (!config.report().empty()) {
    const absl::Status written = WriteReport(config.report(), ReportJson(run.result()));
    if (!written.ok()) return Fail(console, written, ExitCode::kUnavailable);
  }
  if (!shown.ok()) return Fail(console, shown, ExitCode::kUnavailable);
  return code;
}

}  // namespace thinwire
