// GrpcTransport: the Transport over gRPC, for one worker. It opens two connections per server, one
// for the stream and Masters, and one for Join, Leave and Heartbeat, so that a heartbeat never waits
// for the transfer of a tensor. All connections are opened at once when the transport is made:
// over a distance, each takes two round trips, and with TLS more.
//
// Payloads are sent as slices, without a copy: a generic stub calls the Exchange method, and
// proto/frame.h writes the protobuf message around the payloads. A channel pings an idle server
// after 20 s, gives up 20 s after an unanswered ping, and reconnects after 200 ms to 600 ms.
//
// With a Bandwidth, the messages of streams and the chunks of Masters keep its rates: the next
// message is written, or requested, when the earlier ones are paid. Gradients and parameters that
// wait are held back by gRPC's flow control. The first message of a stream in each direction does
// not wait, but is paid too: a new connection proves at once that it works. Join, Leave and
// Heartbeat are neither counted nor delayed.
//
// Every call after a Join shows the newest token that a reply to a Join or a Heartbeat contained
// (common/tls/worker_token.h).
#ifndef THINWIRE_CLIENT_TRANSPORT_GRPC_TRANSPORT_H_
#define THINWIRE_CLIENT_TRANSPORT_GRPC_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/time/bandwidth_limit.h"
#include "proto/control.pb.h"
#include "proto/grpc_credentials.h"
#include "proto/pending_calls.h"

namespace grpc {
class ClientContext;
}

namespace thinwire {

// Thread-safe. A GrpcTransport must outlive its streams.
class GrpcTransport final : public Transport {
 public:
  // Begins to connect to all servers. ADDRESSES: host:port of each server, in the order of the
  // server numbers.
  explicit GrpcTransport(std::vector<std::string> addresses,
                         const Credentials& credentials = Credentials(),
                         Bandwidth bandwidth = Bandwidth());
  // Cancels pending control calls, lifts the limits of the bandwidth, and blocks until the
  // callbacks of the calls have returned.
  ~GrpcTransport() override;

  std::string NameOf(ServerId server) const override;
  std::unique_ptr<FrameStream> Open(ServerId server, StreamObserver& observer) override;
  void Join(ServerId server, const JoinRequest& request, absl::Duration timeout,
            Done<JoinReply> done) override;
  void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                 Done<HeartbeatReply> done) override;
  void Leave(ServerId server, const LeaveRequest& request, absl::Duration timeout,
             Done<LeaveReply> done) override;
  void Masters(ServerId server, const MastersRequest& request, uint64_t most_bytes,
               absl::Duration timeout, Done<std::vector<MastersChunk>> done) override;

 private:
  class MastersCall;
  struct Server;

  // Starts a control call. START(stub, context, request, reply, done) calls the function of the stub.
  template <typename Request, typename Reply, typename Start>
  void Call(ServerId server, Start start, const Request& request, absl::Duration timeout,
            Done<Reply> done);

  // Call before a control call starts. Adds the token to the call.
  void BeginCall(grpc::ClientContext& context);
  // Keeps the token of REPLY, if it has one.
  template <typename Reply>
  void TakeToken(const absl::StatusOr<Reply>& reply);

  // Constant after construction.
  std::vector<std::unique_ptr<Server>> servers_;
  const Bandwidth bandwidth_;

  absl::Mutex mu_;
  std::string token_ ABSL_GUARDED_BY(mu_);  // the newest one; "": none
  PendingCalls calls_;                      // the control calls
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TRANSPORT_GRPC_TRANSPORT_H_
