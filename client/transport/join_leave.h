// Joining and leaving a job: the control calls that the training thread makes, with retries.
//
// A call that fails because the server is unreachable is retried after 100 ms, doubled for each
// retry up to 5 s and jittered, until the server has been silent for too long. Any other error ends
// the retries at once.
#ifndef THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
#define THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/options/client_options.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Returns true if a call or stream that ended with STATUS may succeed when tried again. OK is
// retryable too: a server that closes a stream in order ends it with OK.
bool IsRetryable(const absl::Status& status);

// Returns STATUS with "server 1 (10.0.0.7:5000): " before its message.
absl::Status WithServerName(const Transport& transport, ServerId server,
                            const absl::Status& status);

// Returns the Join request of the worker that OPTIONS describe, for the model that PARTITION
// splits. The request contains the inputs from which a server computes the same partition, and the
// hash of PARTITION for comparison. REQUIRES: PARTITION was made with the shard size and the number
// of servers in OPTIONS.
JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition);

// Joins server 0, the lead, which assigns the incarnation, and then the other servers under that
// incarnation. Retries each server for SILENCE. Returns one reply per server. Errors: the error of
// the first server that could not be joined; Aborted if the generation of a server differs from
// that of server 0.
absl::StatusOr<std::vector<JoinReply>> JoinServers(Transport& transport, Clock& clock,
                                                   absl::Duration silence, JoinRequest request);

// Leaves every server except LOST. Calls each server once, then retries the calls to unreachable
// servers for SILENCE. Returns the error of the last server that could not be reached.
absl::Status LeaveServers(Transport& transport, Clock& clock, absl::Duration silence,
                          uint32_t server_count, const LeaveRequest& request,
                          std::optional<ServerId> lost);

// Returns the first step of a worker after Join: the maximum of the largest `next` and the largest
// frontier in REPLIES. If the job has rounds and any shard has an open round, one is added to the
// largest frontier, because the open round finishes without the new worker. The new worker
// therefore delays no other worker and starts behind none.
Step StartingStep(std::span<const JoinReply> replies);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
