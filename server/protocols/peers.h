// Peers is the lead's connection to the other servers of its job. GrpcPeers uses the network;
// DirectPeers (testing) calls jobs in the same process.
#ifndef THINWIRE_SERVER_PROTOCOLS_PEERS_H_
#define THINWIRE_SERVER_PROTOCOLS_PEERS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/control_rpc.h"

namespace thinwire {

// A call of another server. DONE is called once, on any thread. Errors: gRPC's status codes.
template <typename Request>
struct PeerCall {
  Request request;
  std::function<void(absl::StatusOr<ReplyTo<Request>>)> done;
};

using AnyPeerCall = LeadRpcs<PeerCall>;

// Returns the time for which a server may work on a request, beyond a few seconds.
template <typename Request>
absl::Duration WorkTime(const Request&) {
  return absl::ZeroDuration();
}
inline absl::Duration WorkTime(const SaveCheckpointRequest& request) {
  return absl::Seconds(request.seconds());
}

// Thread-safe.
class Peers {
 public:
  // Ends all calls. No callback runs after the destructor has returned.
  virtual ~Peers() = default;

  // Returns the server's name for messages: "server 1 (10.0.0.8:7000)".
  virtual std::string NameOf(ServerId server) const = 0;

  // Begins CALL at SERVER and returns at once. The call ends after at most a few seconds and its
  // WorkTime.
  virtual void Start(ServerId server, AnyPeerCall call) = 0;

  template <typename Request>
  void Call(ServerId server, const Request& request,
            std::function<void(absl::StatusOr<ReplyTo<Request>>)> done) {
    Start(server, PeerCall<Request>{request, std::move(done)});
  }
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PEERS_H_
