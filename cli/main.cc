// thinwire: the command-line program that trains on this machine, and checks and prints job files.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config_command.h"
#include "cli/console.h"
#include "cli/train_command.h"
#include "cli/version.h"
#include "common/did_you_mean.h"
#include "common/exit_code.h"
#include "config/field_flags.h"
#include "config/fields.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire train --config examples/fashion_mnist.textproto\n"
    "  thinwire train --config examples/fashion_mnist.textproto --mode ssp --slack 3 --report "
    "run.json\n"
    "  thinwire config check examples/*.textproto\n"
    "Exit codes: 0 good, 64 usage, 69 unavailable, 75 terminated, 78 configuration, 130 "
    "interrupted.";

constexpr char kTrainExamples[] =
    "Examples:\n"
    "  thinwire train --config examples/fashion_mnist.textproto\n"
    "  thinwire train --config examples/fashion_mnist.textproto --workers 8 --push topk --density "
    "0.01\n"
    "  thinwire train --model softmax --workers 2 --servers 2 --straggler 1:50ms --report run.json";

constexpr char kConfigExamples[] =
    "Examples:\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire config show examples/fashion_mnist.textproto";

ConsoleOptions OptionsOf(int file) {
  ConsoleOptions options;
  options.terminal = isatty(file) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  winsize size = {};
  if (options.terminal && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    options.columns = size.ws_col - 1u;
  return options;
}

std::string TempParent() {
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

// Returns an error message if the first argument is an unknown command, else "". CLI11 would only
// report that a command is missing.
std::string UnknownCommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return "";
  const std::string nearest =
      DidYouMean(argv[1], std::vector<std::string_view>(names.begin(), names.end()));
  std::string text = std::string("no command \"") + argv[1] + "\"";
  return nearest.empty() ? text + "; --help lists them"
                         : text + "; did you mean \"" + nearest + "\"?";
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
  train->allow_extras();  // CheckNoExtras reports extra arguments instead
  train->footer(kTrainExamples);
  return train;
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

// Removes the environment variables that set fields of the job in servers and workers. The job file
// of the run contains all settings, and such a variable would override a flag of this command line.
void RemoveSettingsFromEnvironment() {
  for (const Field& field : LeafFields(*JobConfig::descriptor())) {
    unsetenv(EnvironmentName(field.name()).c_str());
  }
  for (const char* flag : {"config", "server", "worker", "addresses", "listen", "insecure",
                           "residual_file", "delay"}) {
    unsetenv(EnvironmentName(flag).c_str());
  }
}

ExitCode Train(const CLI::App& app, const FieldFlags& flags, const TrainCommand& command,
               Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = JobOf(command.config_file, flags);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  RemoveSettingsFromEnvironment();
  return RunTrain(command, *config, console, std::cout);
}

// Opens /dev/null for each closed standard file, so that no file or socket opened later becomes
// standard input, output or error.
void FillStandardFiles() {
  int file = 0;
  while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDONLY);
  if (file >= 0) close(file);
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("thinwire: a sharded parameter server for thin wires.", "thinwire");
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText(), "Tells the revision and the codecs");
  app.footer(kExamples);
  TrainCommand train{
      .config_file = "", .bin_dir = "", .self = "/proc/self/exe", .temp_parent = TempParent()};
  CLI::App* train_app = AddTrain(app, train);
  const FieldFlags flags(*train_app);
  ConfigCommand config;
  AddConfig(app, config);

  Console console(std::cerr, OptionsOf(STDERR_FILENO));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string hint = UnknownCommand(app, argc, argv); !hint.empty()) {
      console.Error(hint);
      return ExitCode::kUsage;
    }
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  if (config.check->parsed()) return CheckConfigFiles(config.files, std::cout, std::cerr);
  if (config.show->parsed()) return ShowConfigFile(config.file, std::cout, std::cerr);
  return Train(*train_app, flags, train, console);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  return static_cast<int>(thinwire::Main(argc, argv));
}
