// The contract suite of Transport: one set of tests that every implementation must pass.
//
// An implementation's test provides a TransportUnderTest and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Grpc, TransportContractTest,
//                            ::testing::Values([] { return std::make_unique<GrpcUnderTest>(); }));
#ifndef THINWIRE_CLIENT_TESTING_TRANSPORT_CONTRACT_H_
#define THINWIRE_CLIENT_TESTING_TRANSPORT_CONTRACT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/transport/transport.h"
#include "common/memory/byte_chain.h"
#include "proto/control.pb.h"

namespace thinwire {

// The action of the reference server for a frame depends on the frame's content. Thread-safe.
//   "close"   ends the stream with OK
//   "fail"    ends the stream with FailedPrecondition "join again"
//   other     sends the frame back
enum class ReferenceAction { kEcho, kClose, kFail };
ReferenceAction ReferenceActionFor(const ByteChain& frame);

inline constexpr uint64_t kReferenceChunkCount = 300;

// The reference server's implementation of the control calls. Thread-safe.
class ReferenceControl {
 public:
  ~ReferenceControl() { set_answers(true); }

  // Initially, all control calls return at once. If ANSWERS is false, further calls block
  // until set_answers(true) is called.
  void set_answers(bool answers);

  // Returns a reply with the request's incarnation plus one. Errors: InvalidArgument for worker
  // numbers above 1.
  absl::StatusOr<JoinReply> Join(const JoinRequest& request);
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request);
  // Returns a reply with the request's epoch.
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request);
  // Returns kReferenceChunkCount chunks. Chunk i is the value i of the tensor "w", or "average" if
  // the request is for averages.
  absl::StatusOr<std::vector<MastersChunk>> Masters(const MastersRequest& request);

 private:
  void WaitUntilAnswering();

  absl::Mutex mu_;
  bool answers_ ABSL_GUARDED_BY(mu_) = true;
};

// A transport with two servers: server 0 is a reference server, server 1 cannot be reached.
class TransportUnderTest {
 public:
  virtual ~TransportUnderTest() = default;
  virtual Transport& transport() = 0;
  // Breaks server 0's streams.
  virtual void BreakStreams() = 0;
  // If ANSWERS is false, server 0 leaves control calls unanswered until SetAnswersCalls(true) is
  // called.
  virtual void SetAnswersCalls(bool answers) = 0;
};

using MakeTransportUnderTest = std::function<std::unique_ptr<TransportUnderTest>()>;

class TransportContractTest : public ::testing::TestWithParam<MakeTransportUnderTest> {
 protected:
  Transport& transport() { return under_test_->transport(); }

  const std::unique_ptr<TransportUnderTest> under_test_ = GetParam()();
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TESTING_TRANSPORT_CONTRACT_H_
