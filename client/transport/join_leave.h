// Joining and leaving a job: the control calls that the training thread makes, with retries.
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

// How long a worker waits while it joins, and how it reports its wait.
struct JoinWait {
  absl::Duration start_timeout;  // an unreachable server is called again for this long
  // The timeout of one call. At least a lease, because the lead answers only when the lease of an
  // earlier process ends.
  absl::Duration call_timeout;
  // Receives texts such as "waiting for server 0 (10.0.0.7:7000): connection refused", which are
  // also logged: after `first_notice`, then every `notice_interval`.
  std::function<void(const std::string& text)> report = [](const std::string&) {};
  absl::Duration first_notice = absl::Seconds(1);
  absl::Duration notice_interval = absl::Seconds(5);
};

// Joins server 0, the lead, which assigns an incarnation (the number of this process among the
// processes of the worker), and then the other servers under that incarnation and the lead's run.
// Returns one reply per server. After an error, leaves the servers that it has joined, as
// LeaveServers does without retries. Errors: the error of the first server that could not be joined;
// Aborted if the servers do not agree on the job's generation, which increases whenever a server has
// lost state; Cancelled if STOP is set.
absl::StatusOr<std::vector<JoinReply>> JoinServers(Transport& transport, Clock& clock,
                                                   const std::shared_ptr<StopSignal>& stop,
                                                   const JoinWait& wait, JoinRequest request);

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

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
