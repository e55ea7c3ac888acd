#include "client/transport/transport_contract.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace thinwire {
namespace {

constexpr ServerId kServer{0};
constexpr ServerId kUnreachable{1};

ByteChain Bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return ByteChain(std::vector<std::byte>(first, first + text.size()));
}

ByteChain BytesOfSize(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
  return ByteChain(std::move(bytes));
}

// Records a stream's events. Thread-safe.
class RecordingObserver final : public StreamObserver {
 public:
  void OnFrame(ByteChain frame) override {
    absl::MutexLock lock(&mu_);
    frames_.push_back(std::move(frame));
    ++event_count_;
  }
  void OnWritten() override {
    absl::MutexLock lock(&mu_);
    ++written_count_;
    ++event_count_;
  }
  void OnClosed(absl::Status status) override {
    absl::MutexLock lock(&mu_);
    closed_ = std::move(status);
    ++closed_count_;
    ++event_count_;
  }

  void WaitForWritten(int count) {
    const auto written = [this, count]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return written_count_ >= count; };
    absl::MutexLock lock(&mu_, absl::Condition(&written));
  }
  ByteChain NextFrame() {
    const auto arrived = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !frames_.empty(); };
    absl::MutexLock lock(&mu_, absl::Condition(&arrived));
    ByteChain frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  absl::Status WaitForClosed() {
    const auto closed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return closed_.has_value(); };
    absl::MutexLock lock(&mu_, absl::Condition(&closed));
    return *closed_;
  }
  size_t waiting_frame_count() {
    absl::MutexLock lock(&mu_);
    return frames_.size();
  }
  int written_count() {
    absl::MutexLock lock(&mu_);
    return written_count_;
  }
  int closed_count() {
    absl::MutexLock lock(&mu_);
    return closed_count_;
  }
  int event_count() {
    absl::MutexLock lock(&mu_);
    return event_count_;
  }

 private:
  absl::Mutex mu_;
  std::deque<ByteChain> frames_ ABSL_GUARDED_BY(mu_);
  int written_count_ ABSL_GUARDED_BY(mu_) = 0;
  int closed_count_ ABSL_GUARDED_BY(mu_) = 0;
  int event_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<HeartbeatReply> HeartbeatAndWait(Transport& transport, ServerId server,
                                                absl::Duration timeout = absl::Minutes(1)) {
  HeartbeatRequest request;
  request.set_epoch(9);
  absl::Notification answered;
  absl::StatusOr<HeartbeatReply> result;
  transport.Heartbeat(server, request, timeout, [&](absl::StatusOr<HeartbeatReply> reply) {
    result = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

}  // namespace

ReferenceAction ReferenceActionFor(const ByteChain& frame) {
  if (frame == Bytes("close")) return ReferenceAction::kClose;
  if (frame == Bytes("fail")) return ReferenceAction::kFail;
  return ReferenceAction::kEcho;
}

void ReferenceControl::set_answers(bool answers) {
  absl::MutexLock lock(&mu_);
  answers_ = answers;
}

void ReferenceControl::WaitUntilAnswering() {
  absl::MutexLock lock(&mu_, absl::Condition(&answers_));
}

absl::StatusOr<JoinReply> ReferenceControl::Join(const JoinRequest& request) {
  WaitUntilAnswering();
  if (request.worker() > 1) return absl::InvalidArgumentError("worker 2: out of range");
  JoinReply reply;
  reply.set_incarnation(request.incarnation() + 1);
  return reply;
}

absl::StatusOr<LeaveReply> ReferenceControl::Leave(const LeaveRequest&) {
  WaitUntilAnswering();
  return LeaveReply();
}

absl::StatusOr<HeartbeatReply> ReferenceControl::Heartbeat(const HeartbeatRequest& request) {
  WaitUntilAnswering();
  HeartbeatReply reply;
  reply.set_epoch(request.epoch());
  return reply;
}

TEST_P(TransportContractTest, FramesOfAnySizeArriveWhole) {
  RecordingObserver observer;
  const auto stream = transport().Open(kServer, observer);
  int written = 0;
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{1} << 20) + 100}) {
    const ByteChain frame = BytesOfSize(size);
    stream->Write(frame);
    EXPECT_EQ(observer.NextFrame(), frame) << size;
    observer.WaitForWritten(++written);  // the reply may arrive before OnWritten
    stream->ReadNext();
  }
}

TEST_P(TransportContractTest, FramesArriveInOrder) {
  constexpr int kFrames = 50;
  RecordingObserver observer;
  const auto stream = transport().Open(kServer, observer);
  for (int i = 0; i < kFrames; ++i) {
    stream->Write(Bytes("frame " + std::to_string(i)));
    observer.WaitForWritten(i + 1);
  }
  for (int i = 0; i < kFrames; ++i) {
    EXPECT_EQ(observer.NextFrame(), Bytes("frame " + std::to_string(i)));
    stream->ReadNext();
  }
}

TEST_P(TransportContractTest, OnWrittenFollowsEveryWriteOnce) {
  RecordingObserver observer;
  const auto stream = transport().Open(kServer, observer);
  for (int i = 1; i <= 20; ++i) {
    stream->Write(BytesOfSize(i));
    observer.WaitForWritten(i);
    observer.NextFrame();
    EXPECT_EQ(observer.written_count(), i);
    stream->ReadNext();
  }
}

TEST_P(TransportContractTest, AFrameArrivesOnlyAfterItIsRequested) {
  RecordingObserver observer;
  const auto stream = transport().Open(kServer, observer);
  stream->Write(Bytes("first"));
  observer.WaitForWritten(1);
  stream->Write(Bytes("second"));
  observer.WaitForWritten(2);
  EXPECT_EQ(observer.NextFrame(), Bytes("first"));
  // The heartbeat takes enough time for the second frame to arrive if the transport sends it too
  // early.
  EXPECT_TRUE(HeartbeatAndWait(transport(), kServer).ok());
  EXPECT_EQ(observer.waiting_frame_count(), 0u);
  stream->ReadNext();
  EXPECT_EQ(observer.NextFrame(), Bytes("second"));
}

TEST_P(TransportContractTest, AStreamCanBeDestroyedAtAnyMoment) {
  for (int i = 0; i < 21; ++i) {
    RecordingObserver observer;
    auto stream = transport().Open(kServer, observer);
    if (i % 3 > 0) stream->Write(BytesOfSize(1 << 18));
    if (i % 3 > 1) observer.NextFrame();  // receives a frame without requesting another one
    stream.reset();
    const int event_count = observer.event_count();
    EXPECT_TRUE(HeartbeatAndWait(transport(), kServer).ok());
    EXPECT_EQ(observer.event_count(), event_count) << "no event follows the destructor";
    EXPECT_LE(observer.closed_count(), 1);
  }
}

TEST_P(TransportContractTest, AnUnreachableServerClosesTheStreamOnce) {
  RecordingObserver observer;
  const auto stream = transport().Open(kUnreachable, observer);
  stream->Write(Bytes("frame"));
  EXPECT_EQ(observer.WaitForClosed().code(), absl::StatusCode::kUnavailable);
  stream->Write(Bytes("frame"));
  stream->ReadNext();
  EXPECT_FALSE(HeartbeatAndWait(transport(), kUnreachable).ok());
  EXPECT_EQ(observer.closed_count(), 1);
  EXPECT_EQ(observer.waiting_frame_count(), 0u);
}

TEST_P(TransportContractTest, ALostStreamReportsItsLossOnce) {
  RecordingObserver observer;
  const auto stream = transport().Open(kServer, observer);
  stream->Write(Bytes("frame"));
  observer.WaitForWritten(1);
  EXPECT_EQ(observer.NextFrame(), Bytes("frame"));
  stream->ReadNext();
  under_test_->BreakStreams();
  EXPECT_FALSE(observer.WaitForClosed().ok());
  stream->Write(Bytes("frame"));
  stream->ReadNext();
  EXPECT_FALSE(HeartbeatAndWait(transport(), kUnreachable).ok());
  EXPECT_EQ(observer.closed_count(), 1);
}

TEST_P(TransportContractTest, TheServersStatusEndsTheStream) {
  RecordingObserver closed;
  const auto first = transport().Open(kServer, closed);
  first->Write(Bytes("close"));
  EXPECT_EQ(closed.WaitForClosed(), absl::OkStatus());
  RecordingObserver failed;
  const auto second = transport().Open(kServer, failed);
  second->Write(Bytes("fail"));
  EXPECT_EQ(failed.WaitForClosed(), absl::FailedPreconditionError("join again"));
  EXPECT_EQ(closed.closed_count(), 1);
  EXPECT_EQ(failed.closed_count(), 1);
}

TEST_P(TransportContractTest, ControlCallsReturnAnswersAndErrors) {
  JoinRequest request;
  request.set_incarnation(6);
  EXPECT_EQ(transport().Join(kServer, request, absl::Minutes(1))->incarnation(), 7u);
  EXPECT_TRUE(transport().Leave(kServer, LeaveRequest(), absl::Minutes(1)).ok());
  request.set_worker(2);
  EXPECT_EQ(transport().Join(kServer, request, absl::Minutes(1)).status(),
            absl::InvalidArgumentError("worker 2: out of range"));
  EXPECT_EQ(transport().Join(kUnreachable, request, absl::Minutes(1)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(transport().Leave(kUnreachable, LeaveRequest(), absl::Minutes(1)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(TransportContractTest, AControlCallEndsAtItsDeadline) {
  under_test_->SetAnswersCalls(false);
  const absl::Duration timeout = absl::Milliseconds(20);
  EXPECT_EQ(transport().Join(kServer, JoinRequest(), timeout).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(transport().Leave(kServer, LeaveRequest(), timeout).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(HeartbeatAndWait(transport(), kServer, timeout).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  under_test_->SetAnswersCalls(true);
  EXPECT_TRUE(transport().Leave(kServer, LeaveRequest(), absl::Minutes(1)).ok());
}

TEST_P(TransportContractTest, AHeartbeatIsAnsweredFromAnotherThread) {
  EXPECT_EQ(HeartbeatAndWait(transport(), kServer)->epoch(), 9u);
  EXPECT_EQ(HeartbeatAndWait(transport(), kUnreachable).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(TransportContractTest, NamesContainTheServersNumber) {
  EXPECT_EQ(transport().NameOf(kServer).find("server 0 ("), 0u);
  EXPECT_EQ(transport().NameOf(kUnreachable).find("server 1 ("), 0u);
}

}  // namespace thinwire
