// The words of `thinwire launch` with a Python program, and its form on this machine:
//
//   thinwire launch --workers 4 --servers 2 train.py --push fp8_e5m2
//
// Without --hosts, the process becomes `python3 -m thinwire.launch`, which has the flags of this form. The arguments
// after the program belong to the program, even if they look like flags of thinwire.
#ifndef THINWIRE_CLI_LAUNCH_LAUNCH_SCRIPT_H_
#define THINWIRE_CLI_LAUNCH_LAUNCH_SCRIPT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

struct ScriptLauncher {
  std::string self;         // path of the thinwire program
  std::string python;       // name or path of Python
  std::string python_path;  // the value of PYTHONPATH
};

// Returns the number of the Python program in ARGUMENTS, the command line after the name of the
// program: the first word that ends in ".py". Returns nullopt if ARGUMENTS does not begin with
// `launch` or has no such word before "--".
std::optional<size_t> FindScript(std::span<const std::string> arguments);

// Returns whether FLAGS, the words before the Python program, name a hosts file.
bool HasHosts(std::span<const std::string> flags);

// Returns the command line that launches the script of ARGUMENTS on this machine. REQUIRES:
// FindScript(ARGUMENTS) finds one.
std::vector<std::string> ScriptCommand(const ScriptLauncher& launcher,
                                       std::span<const std::string> arguments);

// Returns the folder of the Python package that belongs to the thinwire program SELF: that of a build
// tree or of a wheel. Errors: NotFound with the expected folders.
absl::StatusOr<std::string> PackageFolder(const std::string& self);

// Returns the PYTHONPATH of that command: in a build tree, its Python package comes first.
std::string ScriptPath(const ScriptLauncher& launcher);

// Replaces this process by that command. Returns only if this fails.
absl::Status LaunchScript(const ScriptLauncher& launcher, std::span<const std::string> arguments);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_LAUNCH_SCRIPT_H_
