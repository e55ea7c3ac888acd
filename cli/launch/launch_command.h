// `thinwire launch --hosts`: runs a job on the machines of a hosts file over ssh. With the C++ worker,
// shows the run as `thinwire train` does. cli/launch/launch_script.h has the form without --hosts, which runs
// a Python program on this machine.
#ifndef THINWIRE_CLI_LAUNCH_LAUNCH_COMMAND_H_
#define THINWIRE_CLI_LAUNCH_LAUNCH_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "cli/terminal/console.h"
#include "cli/train/train_command.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct LaunchCommand {
  TrainCommand run;  // `state_dir` is on the other machines, all other paths are on this one
  std::string hosts_file;
  std::string credentials_from;  // folder of an authority, which issues the certificates of the run
  std::string credentials;       // folder with the credentials folders of all processes
  bool insecure = false;
  bool copy = false;  // copies the programs to the machines
  std::string remote_dir = "/tmp";
  std::string remote_bin_dir;  // empty: thinwire-server and thinwire-worker are in the PATH
  std::string ssh = "ssh";
  bool show_logs = false;
  std::vector<std::string> worker_flags;
  // A Python program that the workers run on the machines, with its arguments; empty: the C++ worker.
  std::vector<std::string> script;
  std::string python = "python3";  // the interpreter on the machines
  std::string work_dir;  // the program's folder on the machines; empty: the path of the present one
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddLaunch(CLI::App& app, LaunchCommand& command);

// Runs the job of the command line. Prints the table of results to OUT and messages to CONSOLE.
ExitCode RunLaunch(const LaunchCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_LAUNCH_COMMAND_H_
