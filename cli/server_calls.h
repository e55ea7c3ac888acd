// ServerCalls: what a training run asks its servers over the control service.
#ifndef THINWIRE_CLI_SERVER_CALLS_H_
#define THINWIRE_CLI_SERVER_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/server_totals.h"
#include "proto/control.pb.h"

namespace thinwire {

// Not thread-safe; calls run on threads of gRPC.
class ServerCalls {
 public:
  // HOST:PORT of every server.
  explicit ServerCalls(const std::vector<std::string>& addresses);
  // Gives up the calls that are still out.
  ~ServerCalls();
  ServerCalls(const ServerCalls&) = delete;
  ServerCalls& operator=(const ServerCalls&) = delete;

  // Asks every server for its status that is not being asked already; does not wait.
  void AskStatus();
  // The newest answers of AskStatus, one per server that has ever answered.
  std::vector<StatusReply> latest() const;

  // Asks and waits. Errors: of the first server that does not answer within TIMEOUT, named.
  absl::StatusOr<std::vector<StatusReply>> Status(absl::Duration timeout);
  // The checksum of all masters (masters_sum.h). Errors: as Status; DataLoss if the servers' pieces
  // make no whole or their count is not that of STATUSES' shards.
  absl::StatusOr<uint32_t> MastersCrc32c(const std::vector<StatusReply>& statuses,
                                         absl::Duration timeout);

 private:
  struct Server;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_SERVER_CALLS_H_
