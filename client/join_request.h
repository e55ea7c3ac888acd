// What a worker says of itself and its model when it joins.
#ifndef THINWIRE_CLIENT_JOIN_REQUEST_H_
#define THINWIRE_CLIENT_JOIN_REQUEST_H_

#include "client/options.h"
#include "common/partition.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Enough for the servers to compute PARTITION, which OPTIONS made, and its hash to compare.
JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_JOIN_REQUEST_H_
