// ServerCalls requests the status and the parameters of all servers of a training run, using the
// Control service (proto/control.proto).
#ifndef THINWIRE_CLI_RPC_SERVER_CALLS_H_
#define THINWIRE_CLI_RPC_SERVER_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control.pb.h"
#include "proto/grpc_credentials.h"

namespace thinwire {

// MastersChecksum computes the checksum of a whole model from chunks that arrive in any order:
//
//   CRC-32C of the masters of all tensors, fp32 little-endian and row-major, with the tensors in
//   the order of their names
//
// Not thread-safe.
class MastersChecksum {
 public:
  // Adds a chunk of a tensor. Errors: InvalidArgument if the length of the chunk in bytes is not a
  // multiple of 4.
  absl::Status Add(const MastersChunk& chunk);

  uint64_t value_count() const { return value_count_; }
  // Returns the checksum of the added chunks. Errors: DataLoss if the chunks of a tensor overlap or
  // have a gap; the message contains the name of the tensor and the position.
  absl::StatusOr<uint32_t> Crc32c() const;

 private:
  // Maps the name of a tensor to the chunks of the tensor. The key of a chunk is the index of its
  // first value in the tensor.
  std::map<std::string, std::multimap<uint64_t, std::string>> tensors_;
  uint64_t value_count_ = 0;
};

// Not thread-safe. The calls run on gRPC's threads.
class ServerCalls {
 public:
  // `addresses` contains the HOST:PORT of every server, ordered by server number.
  explicit ServerCalls(const std::vector<std::string>& addresses,
                       const Credentials& credentials = Credentials());
  // Cancels the pending calls.
  ~ServerCalls();
  ServerCalls(const ServerCalls&) = delete;
  ServerCalls& operator=(const ServerCalls&) = delete;

  // Starts a status call to every server that has no pending status call. Does not block.
  void AskStatus();
  // Returns the latest reply to AskStatus() from each server that has replied.
  std::vector<StatusReply> latest() const;

  // Starts a call that gives the job WORKERS workers, as `thinwire scale` does, unless one is pending.
  // Does not block.
  void AskScale(uint32_t workers);
  struct Scaled {
    uint32_t workers = 0;
    absl::Status status;
  };
  // Returns the last ended call of AskScale(), once; nullopt if there is none.
  std::optional<Scaled> TakeScaled();

  // Requests the status of all servers at the same time, and blocks until each has replied or
  // failed, at most `timeout`. Returns a reply or an error for each server. An error names the
  // server and its address.
  std::vector<absl::StatusOr<StatusReply>> StatusOfEach(absl::Duration timeout);
  // Returns the replies of StatusOfEach(), or the first error.
  absl::StatusOr<std::vector<StatusReply>> Status(absl::Duration timeout);

  // Requests the masters of every server and returns their checksum (see MastersChecksum).
  // `statuses` are the replies of Status(). Errors: those of Status(); DataLoss if the number of
  // received values differs from the number of values in the shards of `statuses`.
  absl::StatusOr<uint32_t> MastersCrc32c(const std::vector<StatusReply>& statuses,
                                         absl::Duration timeout);

 private:
  struct Server;
  const Credentials credentials_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_SERVER_CALLS_H_
