// The texts of gRPC's own errors, for people.
#ifndef THINWIRE_PROTO_GRPC_MESSAGE_H_
#define THINWIRE_PROTO_GRPC_MESSAGE_H_

#include <string>

namespace thinwire {

// Returns the cause of a failed connection or call in gRPC's error message, and other messages
// unchanged:
//   failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:7000: Failed to connect
//   to remote host: Connection refused                                    -> connection refused
//   Deadline Exceeded                                                     -> no answer in time
//   Socket closed                                     -> the server closed the connection
std::string PlainMessage(std::string message);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_GRPC_MESSAGE_H_
