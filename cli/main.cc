// thinwire: trains on this machine and checks configurations.
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
#include "cli/field_docs.h"
#include "cli/field_flags.h"
#include "cli/train_command.h"
#include "cli/version.h"
#include "common/did_you_mean.h"
#include "common/exit_code.h"
#include "proto/config.pb.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire train --config configs/fashion_mnist.textproto\n"
    "  thinwire train --config configs/fashion_mnist.textproto --mode ssp --slack 3 --report "
    "run.json\n"
    "  thinwire config check configs/*.textproto\n"
    "Exit codes: 0 good, 64 usage, 69 unavailable, 75 terminated, 78 configuration, 130 "
    "interrupted.";

constexpr char kTrainExamples[] =
    "Examples:\n"
    "  thinwire train --config configs/fashion_mnist.textproto\n"
    "  thinwire train --config configs/fashion_mnist.textproto --workers 8 --push topk --density "
    "0.01\n"
    "  thinwire train --model softmax --workers 2 --servers 2 --straggler 1:50ms --report run.json";

constexpr char kCheckExamples[] =
    "Examples:\n"
    "  thinwire config check configs/fashion_mnist.textproto\n"
    "  thinwire config check server.textproto --as server";

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

// CLI11 says only that a command is missing; "" if the first word is one, or is none.
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
      ->add_option("--config", command.config_file,
                   "A TrainConfig; the flags below change single fields of it")
      ->type_name("FILE");
  train
      ->add_option("--bin_dir", command.bin_dir,
                   "Where server and worker are; by default beside this program")
      ->type_name("DIR");
  train->allow_extras();  // CheckNoExtras says more of them
  train->footer(kTrainExamples);
  return train;
}

struct CheckCommand {
  std::vector<std::string> files;
  std::string as;
};

CLI::App* AddCheck(CLI::App& app, CheckCommand& command) {
  CLI::App* config = app.add_subcommand("config", "Works on configurations");
  config->require_subcommand(1);
  CLI::App* check = config->add_subcommand(
      "check", "Tells whether configurations are good, or all that is wrong");
  check->add_option("FILE", command.files, "Configurations in text format")->required();
  check
      ->add_option("--as", command.as,
                   "train, server or worker; by default it is guessed by the fields")
      ->check(CLI::IsMember({"train", "server", "worker"}));
  check->footer(kCheckExamples);
  return check;
}

ExitCode Train(const CLI::App& app, const FieldFlags& flags, const TrainCommand& command,
               Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = TrainConfigOf(command.config_file, flags);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  return RunTrain(command, *config, console, std::cout);
}

// A file or a socket that is opened later must not take the place of a standard one that is closed.
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
  const FieldFlags flags(*TrainConfig::descriptor(), ConfigFieldDocs(), *train_app);
  CheckCommand check;
  CLI::App* check_app = AddCheck(app, check);

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
  if (check_app->parsed()) {
    return CheckConfigFiles(check.files, ParseConfigKind(check.as), std::cout, std::cerr);
  }
  return Train(*train_app, flags, train, console);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  return static_cast<int>(thinwire::Main(argc, argv));
}
