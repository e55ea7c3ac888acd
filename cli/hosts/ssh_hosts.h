// SshHosts runs the processes of a job on other machines, each through a connection of ssh.
//
//   local                                 machine
//   thinwire launch -- ssh -- network --- sshd -- sh -- server or worker
//
// The shell on the machine starts the program and reads its own standard input, the end of the
// connection. A line "TERM" there becomes a signal to the program (SignalPath::kInput). The end of
// the input kills the program, so that no program outlives its connection. Standard output,
// standard error and the exit code of the program arrive as those of ssh; a signal N that ended the
// program is the exit code 128 + N.
//
// Each machine gets a private folder for the run, REMOTE_DIR/RUN.N for machine N of the hosts file,
// from 0:
//
//   job.textproto  credentials/server-0/  credentials/worker-2/  bin/server  bin/worker
//
// If the workers run a Python program, it also has the package, the job that worker 0 has written
// (and server N's copy of it), and the addresses of the servers:
//
//   python/thinwire/  program.textproto  server-0.textproto  addresses
#ifndef THINWIRE_CLI_HOSTS_SSH_HOSTS_H_
#define THINWIRE_CLI_HOSTS_SSH_HOSTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/hosts/hosts_file.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "common/base/ids.h"
#include "config/connection_flags.h"

namespace thinwire {

// A Python program that the workers run, on the machines.
struct SshScript {
  std::string python = "python3";    // its interpreter
  std::string folder;                // the folder in which it runs
  std::vector<std::string> command;  // the program and its arguments
};

struct SshSetting {
  std::vector<std::string> ssh = {"ssh"};  // the program and its first arguments
  std::string remote_dir = "/tmp";
  Programs programs;       // on the machines; empty: those in bin/ of the run's folder
  bool plaintext = false;  // without credentials
  std::string state_dir;   // on the machines; empty: the processes keep no state
  // Prepare() requires that `state_dir` has the state of every server; false: that it is empty or
  // absent.
  bool resume = false;
  OutputFile output;  // `path` is on this machine
  std::vector<std::string> worker_flags;
  BandwidthFlags bandwidth;         // the limits of each server and worker
  std::optional<SshScript> script;  // in place of programs.worker
};

// Not thread-safe.
class SshHosts {
 public:
  // The name of DIR is the name of the run's folders. SIGNALS and DIR must outlive the SshHosts.
  SshHosts(std::vector<Host> hosts, SshSetting setting, Signals& signals, const TempDir& dir);

  // Copies the contents of DIR/host-N to the folder of the run on machine N. Checks that this machine
  // has the programs, or the Python program and what that needs. Errors: one line per machine that
  // refuses, with the last message of ssh or of the machine; Cancelled after SIGINT or SIGTERM.
  absl::Status Prepare();

  // Return the command line, of ssh, for a process. ADDRESSES are those of the servers, by number;
  // "" if not known yet. JOB is the text of the server's job file; "": the file that Prepare() has
  // copied. Errors: InvalidArgument if no line of the hosts file has this worker.
  std::vector<std::string> ServerCommand(ServerId server, std::vector<std::string> addresses,
                                         const std::string& job = "") const;
  absl::StatusOr<std::vector<std::string>> WorkerCommand(
      WorkerId worker, const std::vector<std::string>& addresses) const;

  // Return the command lines for a run with SshSetting::script. ScriptCommand: the Python program as
  // worker WORKER, of which there is a line in the hosts file. JobCommand: waits for the job that
  // worker 0 writes, and prints it. AddressesCommands: give ADDRESSES to the workers, one command
  // for each machine with workers.
  std::vector<std::string> ScriptCommand(WorkerId worker) const;
  std::vector<std::string> JobCommand() const;
  std::vector<std::vector<std::string>> AddressesCommands(
      const std::vector<std::string>& addresses) const;

  // Copies the model file that WORKER wrote to `output.path`. Errors: those of Prepare() and of the
  // file system; the message says where the worker's file lies, which RemoveFolders() then keeps.
  absl::Status FetchModel(WorkerId worker);
  // Removes the folders that Prepare() has made, except a model file that could not be copied.
  // Errors: those of Prepare().
  absl::Status RemoveFolders();

  // Returns the signal that ended the last call with Cancelled, else 0.
  int signal() const { return signal_; }
  // Returns one line per machine, such as "10.0.0.1: server 0, workers 0-1".
  std::vector<std::string> Describe() const;

 private:
  // A process of a machine: machine `host` of hosts_, and the number of the process among those of
  // its kind on this machine.
  struct Seat {
    size_t host = 0;
    uint32_t position = 0;
  };

  // Returns the seat of process NUMBER of a kind. Machine H has H.*COUNT processes of this kind. A
  // machine number of hosts_.size() means that there is no seat.
  Seat SeatOf(uint32_t Host::*count, uint32_t number) const;
  std::string FolderOf(size_t host) const;
  // Copies the model file of a machine to `output.path`.
  absl::Status CopyModel(size_t host);
  // Returns a part of a shell script, which ends with an error if the state folder of a machine
  // does not fit SshSetting::resume.
  std::string StateCheck(size_t host) const;
  // Returns such a part for the Python program: its folder, interpreter, file and package.
  std::string ScriptCheck(size_t host) const;
  // Returns the folder of the Python package on a machine; "" if it is installed there.
  std::string PackageOf(size_t host) const;
  Programs ProgramsOf(size_t host) const;
  // Returns the command line that runs the shell command SCRIPT on a machine.
  std::vector<std::string> Ssh(size_t host, const std::string& script) const;
  std::vector<std::string> Supervised(size_t host, const std::vector<std::string>& command) const;
  // Runs COMMANDS, one for each of some machines, at the same time and waits for all. Sets refused_
  // and signal_.
  absl::Status RunAll(const std::map<size_t, std::vector<std::string>>& commands);

  const std::vector<Host> hosts_;
  const SshSetting setting_;
  Signals& signals_;
  const TempDir& dir_;
  std::set<size_t> folders_;         // the machines that may have a folder of the run
  std::set<size_t> refused_;         // the machines whose last command failed
  std::optional<size_t> has_model_;  // the machine whose model file could not be copied
  int signal_ = 0;
};

// Returns WORD such that a POSIX shell reads it as one word.
std::string ShellQuoted(const std::string& word);

}  // namespace thinwire

#endif  // THINWIRE_CLI_HOSTS_SSH_HOSTS_H_
