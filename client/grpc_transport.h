// GrpcTransport: the transport over gRPC. A server's stream and its control calls have a connection
// each, so that a heartbeat never waits behind a tensor.
//
// Payloads pass as raw slices: the Exchange method is called through a generic stub, and frame.h
// has written the protobuf around them. Channels ping an idle server after 20 s, give a lost one up
// after 20 s more, and try to reconnect after 200 ms to 2 s.
#ifndef THINWIRE_CLIENT_GRPC_TRANSPORT_H_
#define THINWIRE_CLIENT_GRPC_TRANSPORT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/transport.h"
#include "common/ids.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {

// Thread-safe. It outlives its streams.
class GrpcTransport final : public Transport {
 public:
  // ADDRESSES: host:port of each server, in their order.
  GrpcTransport(std::vector<std::string> addresses,
                std::shared_ptr<grpc::ChannelCredentials> credentials);
  // Cancels the heartbeats under way and waits until each has said so.
  ~GrpcTransport() override;

  std::string NameOf(ServerId server) const override;
  std::unique_ptr<Stream> Open(ServerId server, StreamObserver& observer) override;
  absl::StatusOr<JoinReply> Join(ServerId server, const JoinRequest& request,
                                 absl::Duration timeout) override;
  absl::StatusOr<LeaveReply> Leave(ServerId server, const LeaveRequest& request,
                                   absl::Duration timeout) override;
  void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                 HeartbeatDone done) override;

 private:
  struct Server {
    std::string address;
    std::shared_ptr<grpc::Channel> data;
    std::unique_ptr<Control::Stub> control;
  };

  // Constant after construction.
  std::vector<Server> servers_;

  absl::Mutex mu_;
  // Heartbeats that may be cancelled, and those whose hold on a channel is not yet gone: a channel
  // must not go on one of gRPC's threads, which would then wait for its own end.
  absl::flat_hash_set<grpc::ClientContext*> cancellable_ ABSL_GUARDED_BY(mu_);
  int underway_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_GRPC_TRANSPORT_H_
