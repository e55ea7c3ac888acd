// Launch: what a training run starts. A TrainConfig becomes one ServerConfig per server and one
// WorkerConfig per worker; programs are found beside this one.
#ifndef THINWIRE_CLI_LAUNCH_H_
#define THINWIRE_CLI_LAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "proto/config.pb.h"

namespace thinwire {

struct Programs {
  std::string server;
  std::string worker;
};

// BIN_DIR holds server/server and worker/worker, as bazel-bin does, or server and worker
// themselves; if it is empty it is SELF's folder where that has a server, else the one above.
// Errors: NotFound that names what was looked for.
absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir);

// REQUIRES: CheckTrainConfig passed.
ServerConfig ServerConfigOf(const TrainConfig& train, ServerId server);
WorkerConfig WorkerConfigOf(const TrainConfig& train, WorkerId worker,
                            const std::vector<std::string>& server_addresses);

// "server 1", "worker 3".
std::string NameOf(ServerId server);
std::string NameOf(WorkerId worker);

// The address of a line "listening HOST:PORT". Errors: InvalidArgument if it is another line.
absl::StatusOr<std::string> ParseListening(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_H_
