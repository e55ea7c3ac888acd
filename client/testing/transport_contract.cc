#include "client/testing/transport_contract.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

// Makes a control CALL and blocks until its reply has arrived.
template <typename Reply>
absl::StatusOr<Reply> Await(const std::function<void(Transport::Done<Reply>)>& call) {
  absl::Notification answered;
  absl::StatusOr<Reply> result;
  call([&](absl::StatusOr<Reply> reply) {
    result = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

absl::StatusOr<JoinReply> Join(Transport& transport, ServerId server, const JoinRequest& request,
                               absl::Duration timeout = absl::Minutes(1)) {
  return Await<JoinReply>([&](Transport::Done<JoinReply> done) {
    transport.Join(server, request, timeout, std::move(done));
  });
}

absl::StatusOr<LeaveReply> Leave(Transport& transport, ServerId server,
                                 absl::Duration timeout = absl::Minutes(1)) {
  return Await<LeaveReply>([&](Transport::Done<LeaveReply> done) {
    transport.Leave(server, LeaveRequest(), timeout, std::move(done));
  });
}

absl::StatusOr<HeartbeatReply> Heartbeat(Transport& transport, ServerId server,
                                         absl::Duration timeout = absl::Minutes(1)) {
  HeartbeatRequest request;
  request.set_epoch(9);
  return Await<HeartbeatReply>([&](Transport::Done<HeartbeatReply> done) {
    transport.Heartbeat(server, request, timeout, std::move(done));
  });
}

absl::StatusOr<std::vector<MastersChunk>> Masters(Transport& transport, ServerId server,
                                                  absl::Duration timeout = absl::Minutes(1),
                                                  const MastersRequest& request = {},
                                                  uint64_t most_bytes = 1 << 30) {
  using Chunks = std::vector<MastersChunk>;
  return Await<Chunks>([&](Transport::Done<Chunks> done) {
    transport.Masters(server, request, most_bytes, timeout, std::move(done));
  });
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

absl::StatusOr<std::vector<MastersChunk>> ReferenceControl::Masters(const MastersRequest& request) {
  WaitUntilAnswering();
  std::vector<MastersChunk> chunks(kReferenceChunkCount);
  for (uint64_t i = 0; i < chunks.size(); ++i) {
    const auto value = static_cast<float>(i);
    chunks[i].set_tensor(request.averages() ? "average" : "w");
    chunks[i].set_offset(i);
    chunks[i].set_values(&value, sizeof(value));
  }
  return chunks;
}

TEST_P(TransportContractTest, FramesOfAnySizeArriveWhole) {
  RecordingObserver observer;
  const auto stream = transport().Open(kServer, observer);
  int written = 0;
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{1} << 20) + 100}) {
    const ByteChain frame = BytesOfSize(size);
    stream->Write(frame);
    EXPECT_EQ(observer.NextFrame(), frame) << size;
    observer.WaitForWritten(++written);  // the server's frame may arrive before OnWritten is called
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
  // If the transport delivered the second frame without a request, the frame would arrive while the
  // heartbeat is under way.
  EXPECT_TRUE(Heartbeat(transport(), kServer).ok());
  EXPECT_EQ(observer.waiting_frame_count(), 0u);
  stream->ReadNext();
  EXPECT_EQ(observer.NextFrame(), Bytes("second"));
}

TEST_P(TransportContractTest, AStreamCanBeDestroyedAtAnyMoment) {
  for (int i = 0; i < 21; ++i) {
    RecordingObserver observer;
    auto stream = transport().Open(kServer, observer);
    if (i % 3 > 0) stream->Write(BytesOfSize(1 << 18));
    if (i % 3 > 1) observer.NextFrame();  // receives the first frame, does not request another
    stream.reset();
    const int event_count = observer.event_count();
    EXPECT_TRUE(Heartbeat(transport(), kServer).ok());
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
  EXPECT_FALSE(Heartbeat(transport(), kUnreachable).ok());
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
  EXPECT_FALSE(Heartbeat(transport(), kUnreachable).ok());
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
  EXPECT_EQ(Join(transport(), kServer, request)->incarnation(), 7u);
  EXPECT_EQ(Heartbeat(transport(), kServer)->epoch(), 9u);
  EXPECT_TRUE(Leave(transport(), kServer).ok());
  request.set_worker(2);
  EXPECT_EQ(Join(transport(), kServer, request).status(),
            absl::InvalidArgumentError("worker 2: out of range"));
  const auto unavailable = absl::StatusCode::kUnavailable;
  EXPECT_EQ(Join(transport(), kUnreachable, request).status().code(), unavailable);
  EXPECT_EQ(Heartbeat(transport(), kUnreachable).status().code(), unavailable);
  EXPECT_EQ(Leave(transport(), kUnreachable).status().code(), unavailable);
  EXPECT_EQ(Masters(transport(), kUnreachable).status().code(), unavailable);
}

TEST_P(TransportContractTest, EveryChunkOfTheMastersArrives) {
  const absl::StatusOr<std::vector<MastersChunk>> chunks = Masters(transport(), kServer);
  ASSERT_TRUE(chunks.ok()) << chunks.status();
  ASSERT_EQ(chunks->size(), kReferenceChunkCount);
  for (uint64_t i = 0; i < kReferenceChunkCount; ++i) {
    const MastersChunk& chunk = (*chunks)[i];
    float value = -1;
    ASSERT_EQ(chunk.values().size(), sizeof(value));
    std::memcpy(&value, chunk.values().data(), sizeof(value));
    EXPECT_EQ(chunk.offset(), i);
    EXPECT_EQ(value, static_cast<float>(i));
  }
}

TEST_P(TransportContractTest, MastersThatTakeMoreThanTheLimitAreRefused) {
  const auto masters = [this](uint64_t most_bytes) {
    return Masters(transport(), kServer, absl::Minutes(1), {}, most_bytes).status();
  };
  const uint64_t least = kReferenceChunkCount * sizeof(MastersChunk);
  const absl::Status refused = masters(least);
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::StartsWith(absl::StrCat("masters: too long (expected at most ", least)));
  EXPECT_EQ(masters(2 * least), absl::OkStatus());
}

TEST_P(TransportContractTest, TheRequestForAveragesArrives) {
  MastersRequest request;
  for (const bool averages : {false, true}) {
    request.set_averages(averages);
    const auto chunks = Masters(transport(), kServer, absl::Minutes(1), request);
    ASSERT_TRUE(chunks.ok()) << chunks.status();
    EXPECT_EQ(chunks->at(0).tensor(), averages ? "average" : "w");
  }
}

TEST_P(TransportContractTest, AControlCallEndsAtItsDeadline) {
  under_test_->SetAnswersCalls(false);
  const absl::Duration timeout = absl::Milliseconds(20);
  const auto exceeded = absl::StatusCode::kDeadlineExceeded;
  EXPECT_EQ(Join(transport(), kServer, JoinRequest(), timeout).status().code(), exceeded);
  EXPECT_EQ(Leave(transport(), kServer, timeout).status().code(), exceeded);
  EXPECT_EQ(Heartbeat(transport(), kServer, timeout).status().code(), exceeded);
  EXPECT_EQ(Masters(transport(), kServer, timeout).status().code(), exceeded);
  under_test_->SetAnswersCalls(true);
  EXPECT_TRUE(Leave(transport(), kServer).ok());
}

TEST_P(TransportContractTest, APendingCallDoesNotDelayCallsToOtherServers) {
  under_test_->SetAnswersCalls(false);
  // The call may end only when the transport is destroyed.
  const auto answered = std::make_shared<absl::Notification>();
  transport().Join(kServer, JoinRequest(), absl::Minutes(1),
                   [answered](const absl::StatusOr<JoinReply>&) { answered->Notify(); });
  EXPECT_FALSE(Leave(transport(), kUnreachable).ok());
  EXPECT_FALSE(Heartbeat(transport(), kUnreachable).ok());
  EXPECT_FALSE(answered->HasBeenNotified());
}

TEST_P(TransportContractTest, NamesContainTheServersNumber) {
  EXPECT_EQ(transport().NameOf(kServer).find("server 0 ("), 0u);
  EXPECT_EQ(transport().NameOf(kUnreachable).find("server 1 ("), 0u);
}

}  // namespace thinwire
