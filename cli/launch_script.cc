#include "cli/launch_script.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

bool IsScript(std::string_view word) { return word.ends_with(".py") && !word.starts_with("-"); }

bool IsHostsFlag(std::string_view word) {
  return word == "--hosts" || word.starts_with("--hosts=");
}

}  // namespace

bool LaunchesScript(std::span<const std::string> arguments) {
  if (arguments.empty() || arguments.front() != "launch") return false;
  const auto end = std::ranges::find(arguments, "--");
  return std::any_of(arguments.begin(), end, IsScript);
}

absl::StatusOr<std::vector<std::string>> ScriptCommand(const ScriptLauncher& launcher,
                                                       std::span<const std::string> arguments) {
  const auto script = std::ranges::find_if(arguments, IsScript);
  if (std::any_of(arguments.begin(), script, IsHostsFlag)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hosts: not valid with a Python program (expected torchrun on each machine, "
                     "which starts servers, too, got ",
                     *script, ")"));
  }
  std::vector<std::string> command = {launcher.python, "-m", "thinwire.launch"};
  command.insert(command.end(), arguments.begin() + 1, arguments.end());
  return command;
}

std::string ScriptPath(const ScriptLauncher& launcher) {
  std::error_code error;
  const fs::path self = fs::canonical(launcher.self, error);
  const fs::path package = self.parent_path().parent_path() / "python";
  if (error || !fs::exists(package / "thinwire/launch.py", error)) return launcher.python_path;
  return launcher.python_path.empty() ? package.string()
                                      : absl::StrCat(package.string(), ":", launcher.python_path);
}

absl::Status LaunchScript(const ScriptLauncher& launcher, std::span<const std::string> arguments) {
  ASSIGN_OR_RETURN(std::vector<std::string> command, ScriptCommand(launcher, arguments));
  const std::string path = ScriptPath(launcher);
  if (!path.empty()) setenv("PYTHONPATH", path.c_str(), /*replace=*/1);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words.front(), words.data());
  return absl::ErrnoToStatus(
      errno, absl::StrCat(launcher.python,
                          ": cannot be started (expected Python, or its path in THINWIRE_PYTHON)"));
}

}  // namespace thinwire
