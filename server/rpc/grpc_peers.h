// GrpcPeers calls the other servers over the network. A call ends after at most two seconds and its
// WorkTime.
#ifndef THINWIRE_SERVER_RPC_GRPC_PEERS_H_
#define THINWIRE_SERVER_RPC_GRPC_PEERS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "proto/grpc_credentials.h"
#include "proto/pending_calls.h"
#include "server/protocols/peers.h"

namespace grpc {
class Channel;
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
  void Start(ServerId server, AnyPeerCall call) override;

 private:
  template <typename Request>
  void Send(ServerId server, PeerCall<Request> call);

  const std::vector<std::string> addresses_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;  // by server number
  PendingCalls calls_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_GRPC_PEERS_H_
