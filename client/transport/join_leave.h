// Joining and leaving a job: the control calls that the training thread makes, with retries.
//
// In a job with rounds, servers that continue from an earlier step have a new, higher generation,
// which the lead reaches first. A server with a lower generation than the lead is called again
// until it has followed. If a server has a higher one, the calls begin again at the lead.
//
// A call that fails because the server is unreachable is retried after a random wait (backoff.h).
// Retries end when the caller's time limit has passed, at once after any other error, and at once
// when the StopSignal is set.
#ifndef THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
#define THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/options/client_options.h"
#include "client/transport/stop_signal.h"
#include "client/transport/transport.h"
#include "common/ids.h"
#include "common/partition.h"
#include "common/time/clock.h"
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

// How long a worker waits while it joins, and how it reports its wait.
struct JoinWait {
  // A server that is unreachable, or that has not followed a rollback yet, is called again for this
  // long.
  absl::Duration start_timeout;
  // If another process has the worker's number, the lead is called again for this long. The other
  // process may be about to end.
  absl::Duration in_use_timeout;
  // The timeout of one call. At least a lease, because the lead answers only when the lease of an
  // earlier process ends.
  absl::Duration call_timeout;
  // Receives texts such as "waiting for server 0 (10.0.0.7:7000): connection refused", which are
  // also logged: after `first_notice`, then every `notice_interval`.
  std::function<void(const std::string& text)> report = [](const std::string&) {};
  absl::Duration first_notice = absl::Seconds(1);
  absl::Duration notice_interval = absl::Seconds(5);
};

// Joins server 0, the lead, and then the other servers under the incarnation (the number of this
// process among the processes of the worker) and the run of the lead's reply. The lead assigns the
// incarnation unless REQUEST states one. Returns one reply per server. In a job with rounds, all
// replies have the same generation, which is at least LEAST.
//
// If a server refuses a stated incarnation, which was assigned after the step from which the
// servers continue, the lead assigns a new one. Fails if another process has taken the worker's
// number.
//
// After an error, leaves the servers that it has joined, as LeaveServers does without retries.
// Errors: the error of the first server that could not be joined; Cancelled if STOP is set.
absl::StatusOr<std::vector<JoinReply>> JoinServers(Transport& transport, Clock& clock,
                                                   const std::shared_ptr<StopSignal>& stop,
                                                   const JoinWait& wait, JoinRequest request,
                                                   Generation least = Generation());

// Leaves SERVERS. Calls all of them at the same time, with a timeout of two seconds, and then calls
// unreachable ones again until PATIENCE has passed or STOP is set. Returns the error of a server
// that it could not leave.
absl::Status LeaveServers(Transport& transport, Clock& clock, StopSignal& stop,
                          absl::Duration patience, std::vector<ServerId> servers,
                          const LeaveRequest& request);

// Returns the first step of a worker after Join. For every shard, REPLIES contain the first
// unfinished step of each worker (`next`) and the shard's current step (the frontier). The result
// is the maximum of the largest `next` and the largest frontier. If the job has rounds and any
// shard has an open round, one is added to the largest frontier, because the open round finishes
// without the new worker. The new worker therefore delays no other worker and starts behind none.
Step StartingStep(std::span<const JoinReply> replies);

// Returns the first step of a process that joins again after a rollback, under the same
// incarnation: the maximum of its own `next` and the largest frontier. The open round waits for the
// process, because the servers remember it.
Step ReturningStep(std::span<const JoinReply> replies);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
