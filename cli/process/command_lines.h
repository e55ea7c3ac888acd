// The processes of a training run: the paths of their programs, their command lines, and the line
// that a server prints when it is ready.
#ifndef THINWIRE_CLI_PROCESS_COMMAND_LINES_H_
#define THINWIRE_CLI_PROCESS_COMMAND_LINES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace thinwire {

struct Programs {
  std::string server;
  std::string worker;
};

// The file of the trained model.
struct OutputFile {
  std::string path;           // empty: no model is written
  std::string keep = "last";  // the parameters to write: last or best
};

// Finds the server and worker programs in the folder `bin_dir`, as server/server and worker/worker
// (the layout of bazel-bin), as thinwire-server and
// thinwire-worker (the Debian packages), or as server and worker. If `bin_dir` is empty, searches
// the folder of the program `self`, then its parent folder. Errors: NotFound with the paths at
// which the missing program was expected.
absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir);

// Finds the program server alone in the same way.
absl::StatusOr<std::string> FindServer(const std::string& self, const std::string& bin_dir);

// Finds the program laboratory in the same way, in bazel-bin's layout as experiments/laboratory.
absl::StatusOr<std::string> FindLaboratory(const std::string& self, const std::string& bin_dir);

// Returns the command line of a server. ADDRESSES is as for a worker; an address that is not known
// yet is "". The server listens on its own address, or on a free port of this machine if that is
// not known yet. Server 0 needs the addresses of all other servers. STATE_DIR is the folder in
// which the servers keep their state; empty: they keep none.
std::vector<std::string> ServerCommand(const Programs& programs, const std::string& job_file,
                                       ServerId server, std::vector<std::string> addresses,
                                       const std::string& state_dir);
// Returns the command line of a worker. `addresses` contains the address of every server, ordered
// by server number. STATE_DIR is the folder in which the workers keep their residuals; empty: they
// keep none.
std::vector<std::string> WorkerCommand(const Programs& programs, const std::string& job_file,
                                       WorkerId worker, const std::vector<std::string>& addresses,
                                       const OutputFile& output, const std::string& state_dir);
// Returns the command line of a worker that only evaluates the model file `model`.
std::vector<std::string> EvaluatorCommand(const Programs& programs, const std::string& job_file,
                                          const std::string& model);

// Returns the name of a process, such as "server 1" or "worker 3".
std::string NameOf(ServerId server);
std::string NameOf(WorkerId worker);
// Return the number in such a name, and nullopt for any other name.
std::optional<ServerId> ServerNamed(const std::string& name);
std::optional<WorkerId> WorkerNamed(const std::string& name);

// Returns the part HOST:PORT of a line of the form "listening HOST:PORT". Errors: InvalidArgument
// for any other line.
absl::StatusOr<std::string> ParseListening(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_COMMAND_LINES_H_
