#include "cli/config_command.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/doctor/disk_check.h"
#include "common/base/status_macros.h"
#include "common/time/clock.h"
#include "config/command_flags.h"
#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/recipes.h"
#include "proto/job.pb.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire config check job.textproto --state_dir /var/lib/thinwire\n"
    "  thinwire config show examples/fashion_mnist.textproto";

struct CheckedFile {
  JobConfig config;
  std::vector<std::string> warnings;
  std::string recipe;  // see ExpandRecipe
};

absl::StatusOr<CheckedFile> ReadChecked(const std::string& file,
                                        const std::string& state_dir = "") {
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(file));
  std::string recipe = ExpandRecipe(text.config, text.places);
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(text.config, text.places));
  CheckedFile checked{.config = text.config,
                      .warnings = WarningsOf(text.config, job, text.places),
                      .recipe = std::move(recipe)};
  // Only the machines of workers need these files, and a flag of a worker may replace their paths.
  for (std::string& line : MissingFiles(job.task, text.places)) {
    checked.warnings.push_back(std::move(line));
  }
  if (!state_dir.empty()) {
    PosixFiles files;
    SteadyClock clock;
    absl::StatusOr<std::optional<std::string>> warning = CheckDisk(job, state_dir, files, clock);
    if (!warning.ok()) {
      return absl::Status(warning.status().code(),
                          absl::StrCat("--state_dir: ", warning.status().message()));
    }
    if (warning->has_value()) checked.warnings.push_back(**std::move(warning));
  }
  return checked;
}

}  // namespace

CLI::App* AddConfig(CLI::App& app, ConfigCommand& command) {
  CLI::App* config = CommandFlags(app).AddSubcommand("config", "Checks and shows job files");
  CommandFlags flags(*config);
  flags.RequireSubcommand();
  flags.Footer(kExamples);
  command.check = flags.AddSubcommand("check", "Reports every problem of job files");
  CommandFlags check(*command.check);
  check.Add("FILE", command.files, "Job files").Required();
  check
      .Add("--state_dir", command.state_dir,
           "The folder in which servers are to keep their state. With durability: log, "
           "measures its disk and warns if it is slower than a network of 1 Gbit/s")
      .Type("DIR");
  command.show =
      flags.AddSubcommand("show", "Prints the effective job: all settings, with their defaults");
  CommandFlags show(*command.show);
  show.Add("FILE", command.file, "A job file").Required();
  return config;
}

ExitCode RunConfig(const ConfigCommand& command, std::ostream& out, std::ostream& err) {
  if (IsParsed(*command.show)) return ShowConfigFile(command.file, out, err);
  return CheckConfigFiles(command.files, command.state_dir, out, err);
}

ExitCode CheckConfigFiles(const std::vector<std::string>& files, const std::string& state_dir,
                          std::ostream& out, std::ostream& err) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& file : files) {
    const absl::StatusOr<CheckedFile> checked = ReadChecked(file, state_dir);
    if (!checked.ok()) {
      err << checked.status().message() << std::endl;
      code = ExitCode::kConfig;
      continue;
    }
    for (const std::string& warning : checked->warnings) err << "warning: " << warning << std::endl;
    if (!checked->recipe.empty()) out << file << ": recipe: " << checked->recipe << std::endl;
    out << file << ": ok" << std::endl;
  }
  return code;
}

ExitCode ShowConfigFile(const std::string& file, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<CheckedFile> checked = ReadChecked(file);
  if (!checked.ok()) {
    err << checked.status().message() << std::endl;
    return ExitCode::kConfig;
  }
  out << EffectiveText(checked->config) << std::flush;
  return ExitCode::kOk;
}

}  // namespace thinwire
