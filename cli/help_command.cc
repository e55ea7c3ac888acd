#include "cli/help_command.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "absl/time/clock.h"
#include "common/text/did_you_mean.h"
#include "config/command_flags.h"
#include "config/man_page.h"

namespace thinwire {

CLI::App* AddHelp(CLI::App& app, HelpCommand& command) {
  CLI::App* help = CommandFlags(app).AddSubcommand("help", "Prints the help of a command");
  CommandFlags flags(*help);
  flags.Add("COMMAND", command.words, "The command, such as train or config check");
  flags.AddSwitch("--man", command.man, "Prints the manual page of the command");
  return help;
}

ExitCode RunHelp(const HelpCommand& command, const CLI::App& app, Console& console,
                 std::ostream& out) {
  const CLI::App* found = &app;
  std::string name = app.get_name();
  for (const std::string& word : command.words) {
    const absl::StatusOr<const CLI::App*> next = FindCommand(*found, word);
    if (!next.ok()) return Fail(console, next.status(), ExitCode::kUsage);
    found = *next;
    name += " " + word;
  }
  if (command.man) {
    out << ManPage(*found, app.get_name(), absl::Now()) << std::flush;
    return ExitCode::kOk;
  }
  // CLI::App::help would print the help of the parsed command, which is `help`.
  out << found->get_formatter()->make_help(found, name, CLI::AppFormatMode::Normal) << std::flush;
  return ExitCode::kOk;
}

absl::StatusOr<const CLI::App*> FindCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
    names.push_back(command->get_name());
  }
  return UnknownWord("command", name, std::vector<std::string_view>(names.begin(), names.end()));
}

}  // namespace thinwire
