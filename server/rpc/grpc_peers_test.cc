#include "server/rpc/grpc_peers.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Nobody listens at this port.
constexpr char kNobody[] = "127.0.0.1:1";

absl::Status Ask(GrpcPeers& peers) {
  absl::Status status;
  absl::Notification answered;
  PeerCall<FollowRequest> call;
  call.done = [&](absl::StatusOr<FollowReply> reply) {
    status = reply.status();
    answered.Notify();
  };
  peers.Start(ServerId{1}, std::move(call));
  answered.WaitForNotification();
  return status;
}

TEST(GrpcPeersTest, AServerThatDoesNotListenIsUnavailable) {
  GrpcPeers peers({kNobody, kNobody});
  EXPECT_EQ(Ask(peers).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(peers.NameOf(ServerId{1}), "server 1 (127.0.0.1:1)");
}

// If gRPC released the last reference to a channel after the end of the peers, it would abort.
TEST(GrpcPeersTest, PeersMayEndAsSoonAsACallHasEnded) {
  for (int i = 0; i < 1000; ++i) {
    GrpcPeers peers({kNobody, kNobody});
    EXPECT_EQ(Ask(peers).code(), absl::StatusCode::kUnavailable);
  }
}

TEST(GrpcPeersTest, PendingCallsAreCancelled) {
  std::optional<absl::Status> status;
  {
    GrpcPeers peers({kNobody, kNobody});
    PeerCall<FollowRequest> call;
    call.done = [&](absl::StatusOr<FollowReply> reply) { status = reply.status(); };
    peers.Start(ServerId{1}, std::move(call));
  }
  EXPECT_TRUE(status.has_value() && !status->ok());
}

}  // namespace
}  // namespace thinwire
