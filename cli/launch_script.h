// The form of `thinwire launch` that runs a Python program with servers on this machine:
//
//   thinwire launch --workers 4 --servers 2 train.py --push fp8_e5m2
//
// The process becomes `python3 -m thinwire.launch`, which has the flags of this form. The arguments
// after the program belong to the program, even if they look like flags of thinwire.
#ifndef THINWIRE_CLI_LAUNCH_SCRIPT_H_
#define THINWIRE_CLI_LAUNCH_SCRIPT_H_

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

// Returns true if ARGUMENTS, the command line after the name of the program, begins with `launch`
// and has a word that ends in ".py", without "--" before it.
bool LaunchesScript(std::span<const std::string> arguments);

// Returns the command line that launches the script of ARGUMENTS. Errors: InvalidArgument for
// --hosts before the script. REQUIRES: LaunchesScript(ARGUMENTS).
absl::StatusOr<std::vector<std::string>> ScriptCommand(const ScriptLauncher& launcher,
                                                       std::span<const std::string> arguments);

// Returns the PYTHONPATH of that command: in a build tree, its Python package comes first.
std::string ScriptPath(const ScriptLauncher& launcher);

// Replaces this process by that command. Returns only if this fails.
absl::Status LaunchScript(const ScriptLauncher& launcher, std::span<const std::string> arguments);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_SCRIPT_H_
