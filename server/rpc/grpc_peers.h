// GrpcPeers calls the other servers over the network. A call ends after at most two seconds, and
// SaveCheckpoint after request.seconds() more.
#ifndef THINWIRE_SERVER_RPC_GRPC_PEERS_H_
#define THINWIRE_SERVER_RPC_GRPC_PEERS_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/grpc_credentials.h"
#include "server/protocols/peers.h"

namespace grpc {
class ClientContext;
}

namespace thinwire {

// Thread-safe.
class GrpcPeers final : public Peers {
 public:
  // ADDRESSES contains the host:port of every server, ordered by server number.
  explicit GrpcPeers(std::vector<std::string> addresses,
                     const Credentials& credentials = Credentials());
  ~GrpcPeers() override;

  std::string NameOf(ServerId server) const override;
  void Admit(ServerId server, const AdmitRequest& request, AdmitDone done) override;
  void Follow(ServerId server, const FollowRequest& request, FollowDone done) override;
  void Rollback(ServerId server, const RollbackRequest& request, RollbackDone done) override;
  void SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) override;
  void SaveCheckpoint(ServerId server, const SaveCheckpointRequest& request,
                      SaveDone done) override;
  void Clip(ServerId server, const ClipRequest& request, ClipDone done) override;

 private:
  struct Stub;

  // Calls START(context, request, reply, done), which begins the RPC, and DONE at its end. The
  // request is performed after at most WORK.
  template <typename Request, typename Reply, typename Start>
  void Call(const Request& request, std::function<void(absl::StatusOr<Reply>)> done, Start start,
            absl::Duration work = absl::ZeroDuration());

  const std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  absl::Mutex mu_;
  std::set<grpc::ClientContext*> pending_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_GRPC_PEERS_H_
