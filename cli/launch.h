// The processes of a training run: where their programs are, their command lines, and the line that
// a server prints when it is ready.
#ifndef THINWIRE_CLI_LAUNCH_H_
#define THINWIRE_CLI_LAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace thinwire {

struct Programs {
  std::string server;
  std::string worker;
};

// Finds the programs in BIN_DIR, as server/server and worker/worker (the layout of bazel-bin) or as
// server and worker. If BIN_DIR is empty, searches the folder of SELF, then the folder above it.
// Errors: NotFound with the paths of the missing program.
absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir);

// Returns the command line of a server, which listens on a free port of this machine.
std::vector<std::string> ServerCommand(const Programs& programs, const std::string& job_file,
                                       ServerId server);
// Returns the command line of a worker. ADDRESSES are those of all servers, in their order.
std::vector<std::string> WorkerCommand(const Programs& programs, const std::string& job_file,
                                       WorkerId worker, const std::vector<std::string>& addresses);

// Returns "server 1", "worker 3".
std::string NameOf(ServerId server);
std::string NameOf(WorkerId worker);

// Returns the address of a line "listening HOST:PORT". Errors: InvalidArgument for another line.
absl::StatusOr<std::string> ParseListening(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_H_
