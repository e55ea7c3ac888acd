// Finds the server and worker programs of a training run, builds their command lines, and parses
// the line that a server prints when it is ready. Pure functions, except that FindPrograms reads
// the file system. Thread-safe.
#ifndef THINWIRE_CLI_LAUNCH_H_
#define THINWIRE_CLI_LAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace thinwire {

// The paths of the two programs.
struct Programs {
  std::string server;
  std::string worker;
};

// Returns the programs in the folder BIN_DIR: server/server and worker/worker, as in bazel-bin, or
// server and worker. If BIN_DIR is empty, searches the folder of the program SELF, or the folder
// above it if SELF's folder has no server. Errors: NotFound with the paths that were tried.
absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir);

// Returns the command line of a server. JOB_FILE is the path of the job file. The server listens on
// a free port of 127.0.0.1.
std::vector<std::string> ServerCommand(const Programs& programs, const std::string& job_file,
                                       ServerId server);
// Returns the command line of a worker. ADDRESSES has the host:port of every server, by server
// number.
std::vector<std::string> WorkerCommand(const Programs& programs, const std::string& job_file,
                                       WorkerId worker, const std::vector<std::string>& addresses);

// Returns the name of a process in messages: "server 1", "worker 3".
std::string NameOf(ServerId server);
std::string NameOf(WorkerId worker);

// Returns the HOST:PORT of a line "listening HOST:PORT". Errors: InvalidArgument for any other
// line.
absl::StatusOr<std::string> ParseListening(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_H_
