// Joining and leaving a job: blocking control calls, with retries, that the training thread makes.
//
// A call that fails because the server is unreachable is retried after 100 ms. The delay doubles up
// to 5 s and is jittered. Retries end when the server has been silent for the SILENCE argument. An
// error that retrying cannot change ends the call at once.
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

// Returns whether a call or stream that ended with STATUS may succeed when tried again. True for
// OK, with which a server closes a stream in order.
bool IsRetryable(const absl::Status& status);

// Returns STATUS with "server 1 (10.0.0.7:5000): " before its message.
absl::Status WithServerName(const Transport& transport, ServerId server,
                            const absl::Status& status);

// Returns the Join request of OPTIONS' worker for the model that PARTITION splits. It contains the
// tensors' names and shapes, from which a server computes PARTITION, and PARTITION's hash for
// comparison. REQUIRES: PARTITION was made with OPTIONS' shard size and number of servers.
JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition);

// Joins server 0, the lead, which assigns the incarnation, and then the other servers under that
// incarnation. Retries each server for SILENCE. Returns one reply per server, by server number.
// Errors: that of the first server that could not be joined; Aborted if a server's generation
// differs from that of server 0.
absl::StatusOr<std::vector<JoinReply>> JoinServers(Transport& transport, Clock& clock,
                                                   absl::Duration silence, JoinRequest request);

// Leaves every server except LOST. Calls each server once, then retries the unreachable ones for
// SILENCE. Returns the error of the last server that could not be reached.
absl::Status LeaveServers(Transport& transport, Clock& clock, absl::Duration silence,
                          uint32_t server_count, const LeaveRequest& request,
                          std::optional<ServerId> lost);

// Returns the first step of a worker after Join, over all shards of REPLIES:
//
//   modes sync and backup, any shard open    max(largest next, largest frontier + 1)
//   otherwise                                max(largest next, largest frontier)
//
// `next` is the first step that a worker has not finished; the worker's predecessor and all other
// workers count. An open round finishes without the new worker, so the new worker delays no other
// worker and starts behind none.
Step StartingStep(std::span<const JoinReply> replies);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
