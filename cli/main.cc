// thinwire: the command-line program. This file lists its commands.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/certs/certs_command.h"
#include "cli/checkpoint/checkpoint_command.h"
#include "cli/completion.h"
#include "cli/config_command.h"
#include "cli/doctor/doctor_command.h"
#include "cli/drain_command.h"
#include "cli/evaluate_command.h"
#include "cli/experiment_command.h"
#include "cli/help_command.h"
#include "cli/k8s/k8s_command.h"
#include "cli/launch/launch_command.h"
#include "cli/launch/launch_script.h"
#include "cli/mode_command.h"
#include "cli/scale_command.h"
#include "cli/status/status_command.h"
#include "cli/terminal/console.h"
#include "cli/trace/trace_command.h"
#include "cli/train/train_command.h"
#include "common/base/exit_code.h"
#include "common/base/process_setup.h"
#include "common/base/status_macros.h"
#include "common/version/version.h"
#include "config/command_flags.h"
#include "config/field_flags.h"
#include "config/fields.h"
#include "config/help.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire train --config job.textproto --output model.safetensors\n"
    "  thinwire launch --config job.textproto --hosts hosts.txt --credentials_from ca\n"
    "  thinwire launch --workers 4 --servers 2 train.py\n"
    "  thinwire launch --hosts hosts.txt --credentials_from ca train.py\n"
    "  thinwire evaluate --config job.textproto --model model.safetensors\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire status --addresses a:7000,b:7000 --watch\n"
    "  thinwire scale --addresses a:7000,b:7000 --workers 8\n"
    "  thinwire mode --addresses a:7000,b:7000 --set async\n"
    "  thinwire certs init ca\n"
    "  thinwire k8s --config job.textproto --name exp1 --namespace team-a --out exp1\n"
    "  thinwire experiment run experiments/staleness.textproto --quick\n"
    "  thinwire help train\n"
    "Environment: NO_COLOR switches colors off, TMPDIR is the folder of temporary files.";

ConsoleOptions OptionsOf(int file) {
  ConsoleOptions options;
  options.terminal = isatty(file) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  options.columns = std::max<size_t>(2, TerminalColumns(file));
  return options;
}

// Returns the value of an environment variable, or FALLBACK if it is not set or empty.
std::string VariableOr(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

// Removes the environment variables that would set flags or job fields in the processes that a
// command starts. The job file of a run already contains all settings. In a server or worker, an
// inherited variable would override this file, and with it a flag of `thinwire train`.
void RemoveSettingsFromEnvironment() {
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    unsetenv(EnvironmentName(field.name()).c_str());
  }
  for (const char* flag : {"config", "server", "worker", "addresses", "listen", "insecure",
                           "credentials", "delay", "state_dir", "output", "wait_for_servers",
                           "replaceable", "keep", "admin", "log_events", "tensorboard", "trace"}) {
    unsetenv(EnvironmentName(flag).c_str());
  }
}

// A command with the function that runs it.
struct Command {
  CLI::App* app;
  std::function<ExitCode()> run;
};

// Returns what is wrong with the command line WORDS. CLI11 reports an unknown command or flag only
// as a missing one.
absl::Status UsageError(const CLI::App& app, std::span<const std::string> words,
                        const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    if (word.starts_with('-') || command->get_subcommands(nullptr).empty()) break;
    const auto found = FindCommand(*command, word);
    if (!found.ok()) return found.status();
    command = *found;
    absl::StrAppend(&name, " ", word);
  }
  RETURN_IF_ERROR(CheckNoExtras(*command));
  return absl::InvalidArgumentError(
      absl::StrCat(error.what(), " (", name, " --help shows what is expected)"));
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("thinwire: a sharded parameter server for thin wires.", "thinwire");
  SetHelpFormat(app, TerminalColumns(STDOUT_FILENO));
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText("thinwire"),
                       "Tells the version, the git revision, the codecs and the GPUs");
  app.footer(absl::StrCat(kExamples, "\n", ExitCodesHelp()));
  Console console(std::cerr, OptionsOf(STDERR_FILENO));
  std::ostream& out = std::cout;
  std::ostream& err = std::cerr;

  TrainCommand train;
  train.self = "/proc/self/exe";
  train.temp_parent = VariableOr("TMPDIR", "/tmp");
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  LaunchCommand launch;
  launch.run.self = train.self;
  launch.run.temp_parent = train.temp_parent;
  launch.python = VariableOr("THINWIRE_PYTHON", "python3");
  if (const auto script = FindScript(arguments)) {
    const auto flags = std::span(arguments).first(*script);
    if (!HasHosts(flags) && VariableOr("THINWIRE_HOSTS", "").empty()) {
      const ScriptLauncher launcher = {
          .self = train.self, .python = launch.python, .python_path = VariableOr("PYTHONPATH", "")};
      return Fail(console, LaunchScript(launcher, arguments), ExitCode::kUnavailable);
    }
    launch.script.assign(arguments.begin() + static_cast<ptrdiff_t>(*script), arguments.end());
    argc = 1 + static_cast<int>(*script);  // the other words belong to the Python program
  }
  EvaluateCommand evaluate;
  evaluate.self = train.self;
  evaluate.temp_parent = train.temp_parent;
  ScaleCommand scale;
  ModeCommand mode;
  StatusCommand status;
  status.redraws = isatty(STDOUT_FILENO) == 1;
  DrainCommand drain;
  DoctorCommand doctor;
  ConfigCommand config;
  CheckpointCommand checkpoint;
  CertsCommand certs;
  K8sCommand k8s;
  TraceCommand trace;
  ExperimentCommand experiment;
  experiment.self = train.self;
  CompletionCommand completion;
  HelpCommand help;
  // The help lists the commands in this order.
  const std::vector<Command> commands = {
      {AddTrain(app, train), [&] { return RunTrain(train, console, out); }},
      {AddLaunch(app, launch), [&] { return RunLaunch(launch, console, out); }},
      {AddEvaluate(app, evaluate), [&] { return RunEvaluate(evaluate, console, out); }},
      {AddScale(app, scale), [&] { return RunScale(scale, console, out); }},
      {AddMode(app, mode), [&] { return RunMode(mode, console, out); }},
      {AddStatus(app, status), [&] { return RunStatus(status, console, out); }},
      {AddDrain(app, drain), [&] { return RunDrain(drain, console, out); }},
      {AddDoctor(app, doctor), [&] { return RunDoctor(doctor, console, out); }},
      {AddConfig(app, config), [&] { return RunConfig(config, out, err); }},
      {AddCheckpoint(app, checkpoint), [&] { return RunCheckpoint(checkpoint, out, err); }},
      {AddCerts(app, certs), [&] { return RunCerts(certs, out, err); }},
      {AddK8s(app, k8s), [&] { return RunK8s(k8s, console, out); }},
      {AddTrace(app, trace), [&] { return RunTraceMerge(trace, out, err); }},
      {AddExperiment(app, experiment), [&] { return RunExperiment(experiment, console, out); }},
      {AddCompletion(app, completion), [&] { return RunCompletion(completion, app, out); }},
      {AddHelp(app, help), [&] { return RunHelp(help, app, console, out); }},
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return static_cast<ExitCode>(app.exit(error));  // --help
    return Fail(console, UsageError(app, arguments, error), ExitCode::kUsage);
  }
  const auto command =
      std::ranges::find_if(commands, [](const Command& each) { return each.app->parsed(); });
  if (const absl::Status extras = CheckNoExtras(*command->app); !extras.ok())
    return Fail(console, extras, ExitCode::kUsage);
  RemoveSettingsFromEnvironment();
  return command->run();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  thinwire::SkipDeadlockSearch();
  return static_cast<int>(thinwire::Main(argc, argv));
}
