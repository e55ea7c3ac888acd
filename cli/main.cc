// thinwire: the command-line program that trains on this machine, and shows job files and checkpoints.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/checkpoint_command.h"
#include "cli/config_command.h"
#include "cli/console.h"
#include "cli/evaluate_command.h"
#include "cli/train_command.h"
#include "cli/version.h"
#include "common/did_you_mean.h"
#include "common/exit_code.h"
#include "config/field_flags.h"
#include "config/fields.h"
#include "config/help.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire train --config job.textproto --output model.safetensors\n"
    "  thinwire evaluate --config job.textproto --model model.safetensors\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire help train\n"
    "Exit codes: 0 good, 64 usage, 69 unavailable, 75 terminated, 78 configuration, 130 "
    "interrupted.";

constexpr char kTrainExamples[] =
    "Examples:\n"
    "  thinwire train --config examples/fashion_mnist.textproto\n"
    "  thinwire train --config job.textproto --workers 8 --push topk --density 0.01\n"
    "  thinwire train --config job.textproto --mode ssp --slack 3 --report run.json\n"
    "  thinwire train --config job.textproto --durability log --state_dir state\n"
    "  thinwire train --model softmax --workers 2 --straggler 1:50ms\n"
    "  thinwire train --config job.textproto --output model.safetensors --keep best";

constexpr char kEvaluateExamples[] =
    "Examples:\n"
    "  thinwire evaluate --config job.textproto --model model.safetensors\n"
    "  thinwire evaluate --config job.textproto --model m.safetensors --data_dir /data";

// The fields of the job file that the evaluation of a model uses. The field model has no flag,
// because --model is the model file.
const std::vector<std::string_view> kFieldsOfEvaluate = {
    "model_file",    "dataset",   "data_dir", "train_examples",
    "test_examples", "precision", "device",   "threads"};

constexpr char kConfigExamples[] =
    "Examples:\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire config show examples/fashion_mnist.textproto";

constexpr char kCheckpointExamples[] =
    "Examples:\n"
    "  thinwire checkpoint list state\n"
    "  thinwire checkpoint verify state\n"
    "  thinwire checkpoint export state --out model.safetensors";

ConsoleOptions OptionsOf(int file) {
  ConsoleOptions options;
  options.terminal = isatty(file) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  options.columns = std::max<size_t>(2, TerminalColumns(file));
  return options;
}

std::string TempParent() {
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

// Returns the subcommand of APP that NAME calls. Errors: InvalidArgument with the names of all
// subcommands.
absl::StatusOr<const CLI::App*> FindCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
    names.push_back(command->get_name());
  }
  return UnknownWord("command", name, std::vector<std::string_view>(names.begin(), names.end()));
}

CLI::App* AddTrain(CLI::App& app, TrainCommand& command) {
  CLI::App* train = app.add_subcommand("train", "Trains with servers and workers on this machine");
  train
      ->add_option(
          "--config", command.config_file,
          "The job file (proto/job.proto in text format). The flags below replace its fields")
      ->type_name("FILE")
      ->envname("THINWIRE_CONFIG");
  train
      ->add_option("--bin_dir", command.bin_dir,
                   "The folder of the programs server and worker. Default: beside this program")
      ->type_name("DIR")
      ->envname("THINWIRE_BIN_DIR");
  train
      ->add_option(
          "--state_dir", command.state_dir,
          "With durability: log, the folder in which the servers keep their state. It must "
          "be empty, except with --resume. Default: a temporary folder")
      ->type_name("DIR")
      ->envname("THINWIRE_STATE_DIR");
  train
      ->add_flag(
          "--resume", command.resume,
          "Goes on with the run in --state_dir. The job must be the same, except for the task "
          "(such as --epochs)")
      ->envname("THINWIRE_RESUME");
  train
      ->add_option("--restarts", command.restarts,
                   "How many processes of the run are started again if they die: workers, and with "
                   "durability: log servers. Default: 3")
      ->type_name("COUNT")
      ->envname("THINWIRE_RESTARTS");
  train->add_flag("--verbose", command.verbose, "Shows all settings of the job at the start")
      ->envname("THINWIRE_VERBOSE");
  CLI::Option* output =
      train
          ->add_option("--output", command.output.path,
                       "The file that gets the trained model, as safetensors with the names of "
                       "PyTorch's state_dict. Without it, no model is written")
          ->type_name("FILE")
          ->envname("THINWIRE_OUTPUT");
  train
      ->add_option("--keep", command.output.keep,
                   "The parameters that --output gets: the final ones, or those with the highest "
                   "test accuracy at the end of an epoch. Default: last")
      ->type_name("last|best")
      ->check(CLI::IsMember({"last", "best"}))
      ->needs(output)
      ->envname("THINWIRE_KEEP");
  train
      ->add_option("--admin", command.admin,
                   "The host:port of a status page of the run, with metrics, in plaintext. Port 0 "
                   "takes a free port. Default: none")
      ->type_name("ADDRESS")
      ->envname("THINWIRE_ADMIN");
  train->allow_extras();  // CheckNoExtras() reports unknown arguments
  train->footer(kTrainExamples);
  return train;
}

CLI::App* AddEvaluate(CLI::App& app, EvaluateCommand& command) {
  CLI::App* evaluate =
      app.add_subcommand("evaluate", "Prints the test accuracy and the test loss of a model file");
  evaluate
      ->add_option("--config", command.config_file,
                   "The job file of the training. The flags below replace its fields")
      ->type_name("FILE")
      ->envname("THINWIRE_CONFIG");
  evaluate->add_option("--model", command.model, "The model file, a file of train --output")
      ->type_name("FILE")
      ->required();
  evaluate
      ->add_option("--bin_dir", command.bin_dir,
                   "The folder of the programs server and worker. Default: beside this program")
      ->type_name("DIR")
      ->envname("THINWIRE_BIN_DIR");
  evaluate->allow_extras();  // CheckNoExtras() reports unknown arguments
  evaluate->footer(kEvaluateExamples);
  return evaluate;
}

struct ConfigCommand {
  CLI::App* check = nullptr;
  CLI::App* show = nullptr;
  std::vector<std::string> files;
  std::string file;
};

void AddConfig(CLI::App& app, ConfigCommand& command) {
  CLI::App* config = app.add_subcommand("config", "Checks and shows job files");
  config->require_subcommand(1);
  config->footer(kConfigExamples);
  command.check = config->add_subcommand("check", "Reports every problem of job files");
  command.check->add_option("FILE", command.files, "Job files")->required();
  command.show =
      config->add_subcommand("show", "Prints the effective job: all settings, with their defaults");
  command.show->add_option("FILE", command.file, "A job file")->required();
}

struct CheckpointCommand {
  CLI::App* list = nullptr;
  CLI::App* inspect = nullptr;
  CLI::App* verify = nullptr;
  CLI::App* export_model = nullptr;
  std::string dir;
  std::string out;
};

void AddCheckpoint(CLI::App& app, CheckpointCommand& command) {
  CLI::App* checkpoint =
      app.add_subcommand("checkpoint", "Shows, checks and exports the checkpoints of a job");
  checkpoint->require_subcommand(1);
  checkpoint->footer(kCheckpointExamples);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* added = checkpoint->add_subcommand(name, help);
    added->add_option("DIR", command.dir, "The state directory of the job")->required();
    return added;
  };
  command.list = add("list", "Lists all checkpoints");
  command.inspect = add("inspect", "Shows the contents of each server's newest checkpoint");
  command.verify = add("verify", "Reads and checks every file of all checkpoints");
  command.export_model = add("export", "Writes the parameters of the newest checkpoints to a file");
  command.export_model->add_option("--out", command.out, "The safetensors file to write")
      ->type_name("FILE")
      ->required();
}

// Runs the subcommand of COMMAND that was given. Returns nullopt if none was.
std::optional<ExitCode> RunCheckpoint(const CheckpointCommand& command) {
  PosixFiles files;
  const std::string& dir = command.dir;
  if (command.list->parsed()) return PrintCheckpoints(files, dir, std::cout, std::cerr);
  if (command.inspect->parsed()) return InspectCheckpoints(files, dir, std::cout, std::cerr);
  if (command.verify->parsed()) return VerifyCheckpoints(files, dir, std::cout, std::cerr);
  if (!command.export_model->parsed()) return std::nullopt;
  return ExportCheckpoint(files, dir, command.out, std::cout, std::cerr);
}

// Prints the help of APP, or of the command that WORDS name, such as {"config", "check"}.
ExitCode Help(const CLI::App& app, const std::vector<std::string>& words, Console& console) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const absl::StatusOr<const CLI::App*> found = FindCommand(*command, word);
    if (!found.ok()) {
      console.Error(std::string(found.status().message()));
      return ExitCode::kUsage;
    }
    command = *found;
    name += " " + word;
  }
  // CLI::App::help would print the help of the parsed command, which is `help`.
  std::cout << command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal)
            << std::flush;
  return ExitCode::kOk;
}

// Removes the environment variables that would set flags or job fields in the servers and workers
// of the run. The job file of the run already contains all settings. In a server or worker, an
// inherited variable would override this file, and with it a flag of `thinwire train`.
void RemoveSettingsFromEnvironment() {
  for (const Field& field : LeafFields(*JobConfig::descriptor())) {
    unsetenv(EnvironmentName(field.name()).c_str());
  }
  for (const char* flag : {"config", "server", "worker", "addresses", "listen", "insecure",
                           "residual_file", "delay", "state_dir", "output", "keep", "admin"}) {
    unsetenv(EnvironmentName(flag).c_str());
  }
}

ExitCode Train(const CLI::App& app, const FieldFlags& flags, const TrainCommand& command,
               Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = JobOf(command.config_file, flags, console);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  RemoveSettingsFromEnvironment();
  return RunTrain(command, *config, console, std::cout);
}

ExitCode Evaluate(const CLI::App& app, const FieldFlags& flags, const EvaluateCommand& command,
                  Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = JobToEvaluate(command.config_file, flags);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  RemoveSettingsFromEnvironment();
  return RunEvaluate(command, *config, console, std::cout);
}

// Opens /dev/null in place of standard input, output or error if it is closed. Otherwise, a file or
// socket that is opened later would get the file descriptor of standard input, output or error.
void FillStandardFiles() {
  int file = 0;
  while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDONLY);
  if (file >= 0) close(file);
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("thinwire: a sharded parameter server for thin wires.", "thinwire");
  SetHelpFormat(app, TerminalColumns(STDOUT_FILENO));
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText(), "Tells the revision and the codecs");
  app.footer(kExamples);
  TrainCommand train;
  train.self = "/proc/self/exe";
  train.temp_parent = TempParent();
  CLI::App* train_app = AddTrain(app, train);
  const FieldFlags flags(*train_app);
  EvaluateCommand evaluate{.config_file = "",
                           .model = "",
                           .bin_dir = "",
                           .self = "/proc/self/exe",
                           .temp_parent = TempParent()};
  CLI::App* evaluate_app = AddEvaluate(app, evaluate);
  const FieldFlags evaluate_flags(*evaluate_app, kFieldsOfEvaluate);
  ConfigCommand config;
  AddConfig(app, config);
  CheckpointCommand checkpoint;
  AddCheckpoint(app, checkpoint);
  CLI::App* help = app.add_subcommand("help", "Prints the help of a command");
  std::vector<std::string> help_words;
  help->add_option("COMMAND", help_words, "The command, such as train or config check");

  Console console(std::cerr, OptionsOf(STDERR_FILENO));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports an unknown command only as a missing command.
    if (argc > 1 && argv[1][0] != '-') {
      if (const auto found = FindCommand(app, argv[1]); !found.ok()) {
        console.Error(std::string(found.status().message()));
        return ExitCode::kUsage;
      }
    }
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  if (config.check->parsed()) return CheckConfigFiles(config.files, std::cout, std::cerr);
  if (help->parsed()) return Help(app, help_words, console);
  if (evaluate_app->parsed()) return Evaluate(*evaluate_app, evaluate_flags, evaluate, console);
  if (config.show->parsed()) return ShowConfigFile(config.file, std::cout, std::cerr);
  if (const auto code = RunCheckpoint(checkpoint)) return *code;
  return Train(*train_app, flags, train, console);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  return static_cast<int>(thinwire::Main(argc, argv));
}
