#include "cli/completion.h"

#include <CLI/CLI.hpp>

#include "config/completion.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire completion bash > ~/.local/share/bash-completion/completions/thinwire\n"
    "  thinwire completion zsh > ~/.zfunc/_thinwire\n"
    "  thinwire completion fish > ~/.config/fish/completions/thinwire.fish\n"
    "  source <(thinwire completion bash)";

}  // namespace

CLI::App* AddCompletion(CLI::App& app, CompletionCommand& command) {
  CLI::App* completion = app.add_subcommand("completion", "Prints a completion script for a shell");
  completion->add_option("SHELL", command.shell, "The shell: bash, zsh or fish")
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  completion->footer(kExamples);
  return completion;
}

ExitCode RunCompletion(const CompletionCommand& command, const CLI::App& app, std::ostream& out) {
  out << CompletionScript(app, "thinwire", command.shell) << std::flush;
  return ExitCode::kOk;
}

}  // namespace thinwire
