#include "client/testing/in_process_transport.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client/testing/transport_contract.h"

namespace thinwire {
namespace {

class ReferenceServer final : public InProcessServer {
 public:
  explicit ReferenceServer(ReferenceControl& control) : control_(control) {}

  void Opened(uint64_t stream, Peer peer) override { streams_[stream] = std::move(peer); }
  void Frame(uint64_t stream, const ByteChain& frame) override {
    const auto found = streams_.find(stream);
    // Drops a frame that the worker sent before it learned that the stream had ended.
    if (found == streams_.end()) return;
    const Peer peer = found->second;
    switch (ReferenceActionFor(frame)) {
      case ReferenceAction::kClose:
        streams_.erase(found);
        return peer.close(absl::OkStatus());
      case ReferenceAction::kFail:
        streams_.erase(found);
        return peer.close(absl::FailedPreconditionError("join again"));
      case ReferenceAction::kEcho:
        return peer.send(frame);
    }
  }
  void Closed(uint64_t stream) override { streams_.erase(stream); }
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) override {
    return control_.Join(request);
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override {
    return control_.Heartbeat(request);
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) override {
    return control_.Leave(request);
  }
  absl::StatusOr<std::vector<MastersChunk>> Masters(const MastersRequest& request) override {
    return control_.Masters(request);
  }

 private:
  ReferenceControl& control_;
  std::map<uint64_t, Peer> streams_;  // used only by the transport's thread
};

class InProcessUnderTest final : public TransportUnderTest {
 public:
  InProcessUnderTest() { transport_.Refuse(ServerId{1}, true); }

  Transport& transport() override { return transport_; }
  void BreakStreams() override { transport_.DropStreams(ServerId{0}); }
  void SetAnswersCalls(bool answers) override { transport_.Mute(ServerId{0}, !answers); }

 private:
  ReferenceControl control_;
  ReferenceServer servers_[2] = {ReferenceServer(control_), ReferenceServer(control_)};
  InProcessTransport transport_{{&servers_[0], &servers_[1]}};
};

INSTANTIATE_TEST_SUITE_P(InProcess, TransportContractTest,
                         ::testing::Values([] { return std::make_unique<InProcessUnderTest>(); }));

}  // namespace
}  // namespace thinwire
