// Peers is the lead's connection to the other servers of its job. GrpcPeers uses the network;
// DirectPeers (testing) calls jobs in the same process.
#ifndef THINWIRE_SERVER_PROTOCOLS_PEERS_H_
#define THINWIRE_SERVER_PROTOCOLS_PEERS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// Thread-safe.
class Peers {
 public:
  using AdmitDone = std::function<void(absl::StatusOr<AdmitReply>)>;
  using SetModeDone = std::function<void(absl::StatusOr<SetModeReply>)>;
  using FollowDone = std::function<void(absl::StatusOr<FollowReply>)>;
  using RollbackDone = std::function<void(absl::StatusOr<RollbackReply>)>;
  using SaveDone = std::function<void(absl::StatusOr<SaveCheckpointReply>)>;
  using ClipDone = std::function<void(absl::StatusOr<ClipReply>)>;

  // Ends all calls. No DONE runs after the destructor has returned.
  virtual ~Peers() = default;

  // Returns the server's name for messages: "server 1 (10.0.0.8:7000)".
  virtual std::string NameOf(ServerId server) const = 0;

  // The methods below call the RPC of their name at SERVER and return at once. They call DONE once,
  // on any thread, after at most a few seconds, SaveCheckpoint after request.seconds() more.
  // Errors: gRPC's status codes.
  virtual void Admit(ServerId server, const AdmitRequest& request, AdmitDone done) = 0;
  virtual void Follow(ServerId server, const FollowRequest& request, FollowDone done) = 0;
  virtual void Rollback(ServerId server, const RollbackRequest& request, RollbackDone done) = 0;
  virtual void SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) = 0;
  virtual void SaveCheckpoint(ServerId server, const SaveCheckpointRequest& request,
                              SaveDone done) = 0;
  virtual void Clip(ServerId server, const ClipRequest& request, ClipDone done) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PEERS_H_
