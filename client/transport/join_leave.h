// Functions for joining.h and leaving.h: they decide which errors are retried, make the Join request,
// and compute the first step of a worker that has joined.
#ifndef THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
#define THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_

#include <span>

#include "absl/status/status.h"
#include "client/options/client_options.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
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
// hash of the whole PARTITION for comparison. REQUIRES: PARTITION was made with the shard size and the number
// of servers in OPTIONS.
JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition);

// Gives the shards in REPLY, which have the numbers of the whole model, their numbers in PARTITION, and
// drops those that PARTITION does not have.
void ToLocal(const Partition& partition, JoinReply& reply);

// Returns the first step of a worker after Join. For every shard, REPLIES contain the first
// unfinished step of each worker (`next`) and the shard's current step (the frontier). The result
// is the maximum of the largest `next` and the largest frontier. If the job has rounds and any
// shard has an open round, one is added to the largest frontier, because the open round finishes
// without the new worker. The new worker therefore delays no other worker and starts behind none. A
// round that the lead has not dealt yet has not begun: at the end of a trial of push: adaptive, the
// lead deals it after a test, for which it may appoint the new worker.
Step StartingStep(std::span<const JoinReply> replies);

// Returns the first step of a process that joins again after a rollback, under the same
// incarnation: the maximum of its own `next` and the largest frontier. The open round waits for the
// process, because the servers remember it.
Step ReturningStep(std::span<const JoinReply> replies);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_JOIN_LEAVE_H_
