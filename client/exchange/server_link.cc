#include "client/exchange/server_link.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/transport/join_leave.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kLongestHeartbeatTimeout = absl::Seconds(2);

}  // namespace

absl::Status FencedError(WorkerId worker) {
  return absl::AbortedError(
      absl::StrCat("worker ", worker.value, ": another process has joined under this number"));
}

// One stream to the server. OpenStream passes the stream's events from the transport's threads to
// the link's event loop. OpenStream keeps one message ready and writes this message as soon as the
// previous one is written, without waiting for the loop. Only tasks of the loop call Write,
// ReadNext and has_room.
class ServerLink::OpenStream final : public StreamObserver {
 public:
  OpenStream(ServerLink& link, uint64_t serial) : link_(link), serial_(serial) {}
  ~OpenStream() override = default;

  // Opens the stream. Call once, before the first Write.
  void Open() { stream_ = link_.parts_.transport.Open(link_.server_, *this); }

  // Returns true if Write may be called.
  bool has_room() const {
    absl::MutexLock lock(&mu_);
    return ready_.empty();
  }
  // Writes FRAME, or keeps it ready until the previous frame is written. REQUIRES: has_room().
  void Write(ByteChain frame) {
    {
      absl::MutexLock lock(&mu_);
      if (std::exchange(writing_, true)) {
        ready_ = std::move(frame);
        return;
      }
    }
    stream_->Write(std::move(frame));
  }
  void ReadNext() { stream_->ReadNext(); }

  void OnFrame(ByteChain frame) override {
    link_.parts_.loop->Post([&link = link_, serial = serial_, frame = std::move(frame)] {
      link.OnFrame(serial, frame);
    });
  }
  void OnWritten() override {
    ByteChain frame;
    {
      absl::MutexLock lock(&mu_);
      frame = std::exchange(ready_, ByteChain());
      writing_ = !frame.empty();
    }
    // stream_ still exists: its destructor waits until this call of OnWritten has returned.
    if (!frame.empty()) stream_->Write(std::move(frame));
    link_.parts_.loop->Post([&link = link_, serial = serial_] { link.OnWritten(serial); });
  }
  void OnClosed(absl::Status status) override {
    link_.parts_.loop->Post([&link = link_, serial = serial_, status = std::move(status)] {
      link.OnClosed(serial, status);
    });
  }

 private:
  ServerLink& link_;
  const uint64_t serial_;
  mutable absl::Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  ByteChain ready_ ABSL_GUARDED_BY(mu_);
  // Declared last, so that the stream is destroyed first and does not call this object while the
  // other members are destroyed.
  std::unique_ptr<FrameStream> stream_;
};

ServerLink::ServerLink(const ExchangeParts& parts, ServerId server, const JoinReply& reply,
                       Incarnation incarnation, absl::Duration heartbeat_interval,
                       Observer& observer)
    : parts_(parts),
      server_(server),
      incarnation_(incarnation),
      generation_{reply.generation()},
      epoch_{reply.epoch()},
      heartbeat_interval_(heartbeat_interval),
      heartbeat_timeout_(std::min(parts.options.silence, kLongestHeartbeatTimeout)),
      observer_(observer),
      queue_(parts.partition.ShardsOf(server)),
      liveness_(parts.options.silence, parts.loop->Now()),
      backoff_(parts.options.worker, server) {}

ServerLink::~ServerLink() { Close(); }

void ServerLink::SendQueued() {
  if (closed_ || reopening_ || resumed_.has_value()) return;
  if (stream_ == nullptr) {
    if (!queue_.has_unsent()) return;
    OpenNewStream();
  }
  while (stream_->has_room()) {
    ByteChain message = NextMessage();
    if (message.empty()) return;
    stream_->Write(std::move(message));
  }
}

void ServerLink::OpenNewStream() {
  stream_ = std::make_unique<OpenStream>(*this, ++serial_);
  stream_->Open();
}

WorkerFrame ServerLink::EmptyFrame() const {
  return {.worker = parts_.options.worker,
          .incarnation = incarnation_,
          .generation = generation_,
          .epoch = epoch_};
}

ByteChain ServerLink::NextMessage() {
  WorkerFrame frame = EmptyFrame();
  if (!queue_.FillMessage(parts_.replica, parts_.options.pull, frame)) return ByteChain();
  if (parts_.tuner != nullptr) {
    size_t pushed_bytes = 0;
    for (const PushEntry& push : frame.pushes) pushed_bytes += push.payload.size();
    parts_.tuner->meter().Sent(pushed_bytes, parts_.loop->Now());
  }
  observer_.OnQueueRoom();
  return ToBytes(frame);
}

ByteChain ServerLink::ToBytes(const WorkerFrame& frame) {
  ByteChain bytes = WriteFrame(frame);
  parts_.report.Count(WorkerCounters::kSentBytesFieldNumber, bytes.size());
  return bytes;
}

void ServerLink::OnWritten(uint64_t serial) {
  if (closed_ || serial != serial_) return;
  liveness_.MessageAccepted(parts_.loop->Now());
  SendQueued();
}

void ServerLink::OnFrame(uint64_t serial, const ByteChain& bytes) {
  if (closed_ || serial != serial_) return;
  failed_ = false;
  backoff_.Reset();
  // Requests one more message, which arrives while the current message is decoded. Requests for
  // more messages could make the queue of received messages grow without limit.
  stream_->ReadNext();
  liveness_.MessageReceived(parts_.loop->Now());
  parts_.report.Count(WorkerCounters::kReceivedBytesFieldNumber, bytes.size());
  const absl::StatusOr<ServerFrame> message = ParseServerFrame(bytes);
  if (!message.ok()) {
    observer_.OnFailure(
        WithServerName(parts_.transport, server_, absl::InternalError(message.status().message())));
    return;
  }
  if (absl::Status same = CheckRun(message->generation, message->epoch); !same.ok()) {
    observer_.OnFailure(std::move(same));
    return;
  }
  observer_.OnMessage(*this, *message);
  for (const WaitingEntry& entry : message->waits) {
    if (entry.seed && queue_.owns(entry.shard)) queue_.Seed(entry.shard);
  }
  SendQueued();
}

absl::Status ServerLink::CheckRun(Generation generation, Epoch epoch) const {
  if (epoch != epoch_) {
    return absl::AbortedError(absl::StrCat(parts_.transport.NameOf(server_), ": server ",
                                           server_.value,
                                           " lost its state: it was restarted (expected epoch ",
                                           epoch_.value, ", got ", epoch.value, ")"));
  }
  if (generation != generation_) {
    return absl::AbortedError(absl::StrCat(parts_.transport.NameOf(server_),
                                           ": lost the job's state (expected generation ",
                                           generation_.value, ", got ", generation.value, ")"));
  }
  return absl::OkStatus();
}

void ServerLink::OnClosed(uint64_t serial, const absl::Status& status) {
  if (closed_ || serial != serial_) return;
  ++serial_;
  stream_.reset();
  Reopen();
  parts_.report.Count(WorkerCounters::kReconnectsFieldNumber);
  if (parts_.tuner != nullptr) parts_.tuner->meter().Lost();
  liveness_.StreamLost(parts_.loop->Now(), status);
  // FailedPrecondition has two causes: the server has restarted, or another process has taken this
  // worker's number. The reply to the next heartbeat distinguishes the two cases.
  if (!IsRetryable(status) && !absl::IsFailedPrecondition(status)) {
    observer_.OnFailure(WithServerName(parts_.transport, server_, status));
    return;
  }
  queue_.ResendUnanswered();
}

void ServerLink::Reopen() {
  const absl::Duration wait = std::exchange(failed_, true) ? backoff_.Next() : absl::ZeroDuration();
  reopening_ = true;
  parts_.loop->PostAt(parts_.loop->Now() + wait, [this] {
    reopening_ = false;
    if (closed_) return;
    OpenNewStream();
    // A worker that computes has nothing to send. It opens the stream all the same, because a
    // server that accepts no stream counts as lost.
    if (!queue_.has_unsent()) stream_->Write(ToBytes(EmptyFrame()));
    SendQueued();
  });
}

void ServerLink::Resume() {
  resumed_ = parts_.loop->Now();
  liveness_.Restart(*resumed_);
}

void ServerLink::Close() {
  closed_ = true;
  stream_.reset();
}

void ServerLink::SendHeartbeat() {
  if (closed_) return;
  HeartbeatRequest request;
  request.set_worker(parts_.options.worker.value);
  request.set_incarnation(incarnation_.value);
  request.set_epoch(epoch_.value);
  // The callback shares ownership of the loop. A reply that arrives after the loop has stopped is
  // dropped by the loop.
  parts_.transport.Heartbeat(
      server_, request, heartbeat_timeout_,
      [this, loop = parts_.loop, sent = parts_.loop->Now()](absl::StatusOr<HeartbeatReply> reply) {
        loop->Post([this, sent, reply = std::move(reply)] { OnHeartbeat(sent, reply); });
      });
}

void ServerLink::OnHeartbeat(absl::Time sent, const absl::StatusOr<HeartbeatReply>& reply) {
  if (closed_) return;
  CheckHeartbeat(sent, reply);
  parts_.loop->PostAt(sent + heartbeat_interval_, [this] { SendHeartbeat(); });
}

void ServerLink::CheckHeartbeat(absl::Time sent, const absl::StatusOr<HeartbeatReply>& reply) {
  if (!reply.ok()) {
    liveness_.HeartbeatFailed(reply.status());
    if (!IsRetryable(reply.status())) {
      observer_.OnFailure(WithServerName(parts_.transport, server_, reply.status()));
    }
    return;
  }
  liveness_.HeartbeatAnswered(parts_.loop->Now());
  absl::Status same = CheckRun(Generation{reply->generation()}, Epoch{reply->epoch()});
  if (!same.ok()) return observer_.OnFailure(std::move(same));
  if (reply->fenced()) return observer_.OnFailure(FencedError(parts_.options.worker));
  if (resumed_.has_value() && sent >= *resumed_) {
    resumed_.reset();
    SendQueued();
  }
  std::vector<WorkerId> live;
  for (const uint32_t worker : reply->live()) live.push_back(WorkerId{worker});
  parts_.report.set_live(server_, std::move(live));
}

}  // namespace thinwire::client
