// ServerCalls asks the servers of a training run for their status and their parameters, over the
// Control service (proto/control.proto).
#ifndef THINWIRE_CLI_SERVER_CALLS_H_
#define THINWIRE_CLI_SERVER_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control.pb.h"

namespace thinwire {

// MastersChecksum computes the checksum of a whole model from pieces that arrive in any order:
//
//   CRC-32C of the masters of all tensors, fp32 little-endian and row-major, with the tensors in
//   the order of their names
//
// Not thread-safe.
class MastersChecksum {
 public:
  // Errors: InvalidArgument if the bytes are not a whole number of fp32 values.
  absl::Status Add(const MastersChunk& chunk);

  uint64_t value_count() const { return value_count_; }
  // Errors: DataLoss if the pieces of a tensor overlap or have a gap, with its name and the
  // position.
  absl::StatusOr<uint32_t> Crc32c() const;

 private:
  // For each tensor name, the received pieces: offset in values -> bytes.
  std::map<std::string, std::multimap<uint64_t, std::string>> tensors_;
  uint64_t value_count_ = 0;
};

// Not thread-safe. The calls run on gRPC's threads.
class ServerCalls {
 public:
  // `addresses` has HOST:PORT of every server, in their order.
  explicit ServerCalls(const std::vector<std::string>& addresses);
  // Cancels the pending calls.
  ~ServerCalls();
  ServerCalls(const ServerCalls&) = delete;
  ServerCalls& operator=(const ServerCalls&) = delete;

  // Starts a status call to every server that has none pending. Does not block.
  void AskStatus();
  // Returns the latest replies to AskStatus(), one per server that has ever replied.
  std::vector<StatusReply> latest() const;

  // Asks every server for its status and blocks until all have replied. Errors: that of the first
  // server that fails or does not reply within `timeout`, with its number and address.
  absl::StatusOr<std::vector<StatusReply>> Status(absl::Duration timeout);

  // Returns the checksum of all masters. Errors: as Status(); DataLoss if the servers' pieces do
  // not make up the shards of `statuses`.
  absl::StatusOr<uint32_t> MastersCrc32c(const std::vector<StatusReply>& statuses,
                                         absl::Duration timeout);

 private:
  struct Server;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_SERVER_CALLS_H_
