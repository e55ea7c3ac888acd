#include "cli/launch/launch_script.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

bool IsScript(std::string_view word) { return word.ends_with(".py") && !word.starts_with("-"); }

}  // namespace

std::optional<size_t> FindScript(std::span<const std::string> arguments) {
  if (arguments.empty() || arguments.front() != "launch") return std::nullopt;
  const auto end = std::ranges::find(arguments, "--");
  const auto script = std::find_if(arguments.begin(), end, IsScript);
  if (script == end) return std::nullopt;
  return static_cast<size_t>(script - arguments.begin());
}

bool HasHosts(std::span<const std::string> flags) {
  return std::ranges::any_of(flags, [](const std::string& word) {
    return word == "--hosts" || word.starts_with("--hosts=");
  });
}

std::vector<std::string> ScriptCommand(const ScriptLauncher& launcher,
                                       std::span<const std::string> arguments) {
  std::vector<std::string> command = {launcher.python, "-m", "thinwire.launch"};
  command.insert(command.end(), arguments.begin() + 1, arguments.end());
  return command;
}

absl::StatusOr<std::string> PackageFolder(const std::string& self) {
  std::error_code error;
  const fs::path folder = fs::canonical(self, error).parent_path().parent_path();
  for (const fs::path& package : {folder / "python/thinwire", folder}) {
    if (!error && fs::exists(package / "launch.py", error)) return package.string();
  }
  return absl::NotFoundError(absl::StrCat("--copy: no Python package (expected ",
                                          (folder / "python/thinwire").string(), " or ",
                                          folder.string(), ")"));
}

std::string ScriptPath(const ScriptLauncher& launcher) {
  const absl::StatusOr<std::string> package = PackageFolder(launcher.self);
  // The folder of a wheel is on the path already.
  if (!package.ok() || fs::path(*package).parent_path().filename() != "python")
    return launcher.python_path;
  const std::string path = fs::path(*package).parent_path().string();
  return launcher.python_path.empty() ? path : absl::StrCat(path, ":", launcher.python_path);
}

absl::Status LaunchScript(const ScriptLauncher& launcher, std::span<const std::string> arguments) {
  std::vector<std::string> command = ScriptCommand(launcher, arguments);
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
