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

// BIN_DIR holds server/server and worker/worker, as bazel-bin does, or server and worker
// themselves; if it is empty it is SELF's folder where that has a server, else the one above.
// Errors: NotFound with the paths of the missing program.
absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir);

// The command line of a process. JOB_FILE describes the job; the server takes a free port of this
// machine.
std::vector<std::string> ServerCommand(const Programs& programs, const std::string& job_file,
                                       ServerId server);
// ADDRESSES are those of all servers, in their order.
std::vector<std::string> WorkerCommand(const Programs& programs, const std::string& job_file,
                                       WorkerId worker, const std::vector<std::string>& addresses);

// "server 1", "worker 3".
std::string NameOf(ServerId server);
std::string NameOf(WorkerId worker);

// The address of a line "listening HOST:PORT". Errors: InvalidArgument if it is another line.
absl::StatusOr<std::string> ParseListening(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_H_
