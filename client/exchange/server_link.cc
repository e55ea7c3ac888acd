#include "client/exchange/server_link.h"

#include <glog/logging.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "client/transport/join_leave.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {
namespace {

// Messages have the numbers of the shards in the whole model.
template <typename Entry>
void ToGlobal(const Partition& partition, std::vector<Entry>& entries) {
  if (!partition.is_part()) return;
  for (Entry& entry : entries) entry.shard = partition.global(entry.shard);
}

// Drops the entries of shards that the client does not have.
template <typename Entry>
void ToLocal(const Partition& partition, std::vector<Entry>& entries) {
  if (!partition.is_part()) return;
  std::erase_if(entries, [&partition](Entry& entry) {
    const std::optional<ShardId> local = partition.local(entry.shard);
    entry.shard = local.value_or(entry.shard);
    return !local.has_value();
  });
}

}  // namespace

absl::Status FencedError(const ClientOptions& options) {
  return absl::AlreadyExistsError(
      options.owned_tensors.empty()
          ? absl::StrCat("worker ", options.worker.value,
                         ": another process has joined under this number")
          : absl::StrCat("worker ", options.worker.value, " member ", options.member,
                         ": another process of this worker was lost or has left (expected all "
                         "members; start all of them again)"));
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

  // Returns true if Write may be called. Otherwise the link's OnWritten is called when it may.
  bool has_room() {
    absl::MutexLock lock(&mu_);
    if (!ready_.empty()) awaits_room_ = true;
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
    Post([frame = std::move(frame)](ServerLink& link, uint64_t serial) {
      link.OnFrame(serial, frame);
    });
  }
  void OnWritten() override {
    ByteChain frame;
    bool notifies = false;
    {
      absl::MutexLock lock(&mu_);
      frame = std::exchange(ready_, ByteChain());
      writing_ = !frame.empty();
      notifies = std::exchange(awaits_room_, false);
    }
    // stream_ still exists: its destructor waits until this call of OnWritten has returned.
    if (!frame.empty()) stream_->Write(std::move(frame));
    if (notifies) Post([](ServerLink& link, uint64_t serial) { link.OnWritten(serial); });
  }
  void OnClosed(absl::Status status) override {
    Post([status = std::move(status)](ServerLink& link, uint64_t serial) {
      link.OnClosed(serial, status);
    });
  }

 private:
  // Calls EVENT(link, serial) in a task of the loop, if the link still exists.
  template <typename Event>
  void Post(Event event) {
    link_.parts_.loop->Post(link_.scope_.Bind(
        [&link = link_, serial = serial_, event = std::move(event)] { event(link, serial); }));
  }

  ServerLink& link_;
  const uint64_t serial_;
  absl::Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // The link waits for room, or for the first message to be accepted.
  bool awaits_room_ ABSL_GUARDED_BY(mu_) = true;
  ByteChain ready_ ABSL_GUARDED_BY(mu_);
  // Declared last, so that the stream is destroyed first and does not call this object while the
  // other members are destroyed.
  std::unique_ptr<FrameStream> stream_;
};

ServerLink::ServerLink(const ExchangeParts& parts, ServerId server, const JoinRequest& rejoin,
                       const JoinReply& reply, absl::Duration heartbeat_interval,
                       Observer& observer)
    : parts_(parts),
      server_(server),
      rejoin_(rejoin),
      incarnation_{rejoin.incarnation()},
      by_round_(reply.by_round()),
      generation_{reply.generation()},
      epoch_{reply.epoch()},
      observer_(observer),
      heartbeats_(
          parts, server, heartbeat_interval, [this] { return MakeHeartbeat(); },
          [this](absl::Time sent, const HeartbeatRequest& request,
                 const absl::StatusOr<HeartbeatReply>& answer) {
            OnHeartbeat(sent, request, answer);
          }),
      queue_(parts.partition.ShardsOf(server), WorksAhead(parts.options)),
      liveness_(parts.options.silence, parts.loop->Now()),
      backoff_(parts.options.worker, server) {}

ServerLink::~ServerLink() { Close(); }

void ServerLink::SendQueued() {
  if (!may_send()) return;
  if (!has_stream()) {
    if (!queue_.has_unsent() && state_ == State::kIdle) return;
    OpenNewStream();
    // A worker that computes has nothing to send. It replaces a lost stream all the same, because a
    // server that accepts no stream counts as lost.
    if (!queue_.has_unsent()) stream_->Write(ToBytes(EmptyFrame()));
  }
  while (queue_.has_unsent() && stream_->has_room()) {
    ByteChain message = NextMessage();
    if (message.empty()) return;
    stream_->Write(std::move(message));
  }
}

void ServerLink::OpenNewStream() {
  state_ = state_ == State::kIdle ? State::kOpen : State::kReopened;
  stream_ = std::make_unique<OpenStream>(*this, ++serial_);
  stream_->Open();
}

WorkerFrame ServerLink::EmptyFrame() const {
  return {.worker = parts_.options.worker,
          .incarnation = incarnation_,
          .generation = generation_,
          .epoch = epoch_,
          .member = parts_.options.member};
}

ByteChain ServerLink::NextMessage() {
  WorkerFrame frame = EmptyFrame();
  if (!queue_.FillMessage(parts_.replica, parts_.options.pull, frame)) return ByteChain();
  size_t pushed_bytes = 0;
  for (const PushEntry& push : frame.pushes) pushed_bytes += push.payload.size();
  parts_.meter.Sent(pushed_bytes, parts_.loop->Now());
  observer_.OnQueueRoom();
  ToGlobal(parts_.partition, frame.seeds);
  ToGlobal(parts_.partition, frame.pushes);
  ToGlobal(parts_.partition, frame.reads);
  return ToBytes(frame);
}

ByteChain ServerLink::ToBytes(const WorkerFrame& frame) {
  ByteChain bytes = WriteFrame(frame);
  parts_.report.Count(WorkerCounters::kSentBytesFieldNumber, bytes.size());
  return bytes;
}

void ServerLink::OnWritten(uint64_t serial) {
  if (serial != serial_) return;
  liveness_.MessageAccepted(parts_.loop->Now());
  SendQueued();
}

void ServerLink::OnFrame(uint64_t serial, const ByteChain& bytes) {
  if (serial != serial_) return;
  // Requests one more message, which arrives while the current message is decoded. Requests for
  // more messages could make the queue of received messages grow without limit.
  stream_->ReadNext();
  parts_.report.Count(WorkerCounters::kReceivedBytesFieldNumber, bytes.size());
  absl::StatusOr<ServerFrame> message = ParseServerFrame(bytes);
  if (!message.ok()) {
    observer_.OnFailure(
        WithServerName(parts_.transport, server_, absl::InternalError(message.status().message())));
    return;
  }
  if (!AcceptsGeneration(message->generation)) return;
  if (message->epoch != epoch_ || message->generation != generation_) return Rejoin();
  state_ = State::kOpen;
  backoff_.Reset();
  liveness_.MessageReceived(parts_.loop->Now());
  ToLocal(parts_.partition, message->verdicts);
  ToLocal(parts_.partition, message->parameters);
  ToLocal(parts_.partition, message->waits);
  observer_.OnMessage(*this, *message);
  for (const WaitingEntry& entry : message->waits) {
    if (entry.seed && queue_.owns(entry.shard)) queue_.Seed(entry.shard);
  }
  SendQueued();
}

bool ServerLink::AcceptsGeneration(Generation generation) {
  if (generation == generation_ || (generation > generation_ && !by_round_)) return true;
  if (generation > generation_) {
    observer_.OnRollback(generation);
    return false;
  }
  observer_.OnFailure(WithServerName(
      parts_.transport, server_,
      absl::AbortedError(absl::StrCat("lost the job's state (expected generation ",
                                      generation_.value, ", got ", generation.value, ")"))));
  return false;
}

void ServerLink::Adopt(Generation generation) {
  if (const auto more = return_lines_.Next(parts_.loop->Now())) {
    LOG(WARNING) << parts_.transport.NameOf(server_)
                 << ": continues from an earlier state under generation " << generation << *more;
  }
  generation_ = generation;
  for (const ShardId shard : parts_.partition.ShardsOf(server_)) parts_.replica.Forget(shard);
  observer_.OnAdopted(*this);
}

void ServerLink::OnClosed(uint64_t serial, const absl::Status& status) {
  if (serial != serial_) return;
  const absl::Duration wait = state_ == State::kReopened ? backoff_.Next() : absl::ZeroDuration();
  LoseStream(status);
  if (absl::IsFailedPrecondition(status)) {
    // The server was started again, or another process has taken this worker's number. The reply to
    // a new heartbeat distinguishes the two cases.
    unconfirmed_since_ = parts_.loop->Now();
    heartbeats_.SendNow();
  } else if (!IsRetryable(status)) {
    observer_.OnFailure(WithServerName(parts_.transport, server_, status));
    return;
  }
  ReopenAfter(wait);
}

void ServerLink::LoseStream(const absl::Status& status) {
  if (has_stream()) {
    parts_.report.Count(WorkerCounters::kReconnectsFieldNumber);
    if (const auto more = loss_lines_.Next(parts_.loop->Now())) {
      // The returns of adaptive precision end the streams.
      LOG_AT_LEVEL(parts_.options.arms.empty() ? google::GLOG_WARNING : google::GLOG_INFO)
          << parts_.transport.NameOf(server_)
          << ": the connection was lost and is opened again: " << status.message() << *more;
    }
  }
  ++serial_;
  stream_.reset();
  state_ = State::kLost;
  parts_.meter.Lost();
  liveness_.StreamLost(parts_.loop->Now(), status);
  queue_.ResendUnanswered();
}

void ServerLink::ReopenAfter(absl::Duration wait) {
  state_ = State::kPausing;
  parts_.loop->PostAt(parts_.loop->Now() + wait, scope_.Bind([this, serial = serial_] {
    if (serial != serial_ || state_ != State::kPausing) return;  // the wait has ended early
    state_ = State::kLost;
    SendQueued();
  }));
}

void ServerLink::Resume() {
  unconfirmed_since_ = parts_.loop->Now();
  liveness_.Restart(*unconfirmed_since_);
}

void ServerLink::Close() {
  state_ = State::kClosed;
  ++serial_;
  stream_.reset();
  heartbeats_.Stop();
}

HeartbeatRequest ServerLink::MakeHeartbeat() const {
  HeartbeatRequest request;
  request.set_worker(parts_.options.worker.value);
  request.set_incarnation(incarnation_.value);
  request.set_epoch(epoch_.value);
  request.set_member(parts_.options.member);
  if (server_ == ServerId{0}) {
    parts_.deals.FillIn(request);
    parts_.worker_news.FillIn(request);
  }
  return request;
}

void ServerLink::OnHeartbeat(absl::Time sent, const HeartbeatRequest& request,
                             const absl::StatusOr<HeartbeatReply>& reply) {
  if (!reply.ok()) {
    liveness_.CallFailed(reply.status());
    if (!IsRetryable(reply.status())) {
      observer_.OnFailure(WithServerName(parts_.transport, server_, reply.status()));
    }
    return;
  }
  // Ignores the reply if the link has joined the server again since. The reply may come from the
  // server's former process.
  if (Epoch{request.epoch()} == epoch_) CheckReply(sent, *reply);
}

void ServerLink::CheckReply(absl::Time sent, const HeartbeatReply& reply) {
  const Generation generation{reply.generation()};
  if (!AcceptsGeneration(generation)) return;
  if (reply.fenced()) return observer_.OnFailure(FencedError(parts_.options));
  if (Epoch{reply.epoch()} != epoch_ || generation != generation_) return Rejoin();
  liveness_.CallAnswered(parts_.loop->Now());
  Confirm(sent);
  // Before the deals, with which a step can begin.
  parts_.job_news.Add(server_, reply);
  if (server_ == ServerId{0}) {
    absl::Status dealt = parts_.deals.Add(reply);
    if (!dealt.ok()) return FailForDeals(dealt);
  }
  if (heartbeats_.after_failure()) {
    // The server responds again, so a stream may succeed now.
    if (state_ == State::kPausing) state_ = State::kLost;
    backoff_.Reset();
  }
  SendQueued();
}

void ServerLink::FailForDeals(const absl::Status& status) {
  observer_.OnFailure(
      WithServerName(parts_.transport, server_, absl::InternalError(status.message())));
}

void ServerLink::Confirm(absl::Time sent) {
  if (unconfirmed_since_.has_value() && sent >= *unconfirmed_since_) unconfirmed_since_.reset();
}

void ServerLink::Rejoin() {
  const absl::Time now = parts_.loop->Now();
  if (state_ != State::kJoining && state_ != State::kAway) {
    lost_since_ = liveness_.last_sign();
    LoseStream(absl::UnavailableError("started again, no answer to Join yet"));
  }
  liveness_.CallAnswered(now);
  if (std::exchange(state_, State::kJoining) == State::kJoining) return;
  auto on_reply = scope_.Bind([this, sent = now](const auto& reply) { OnJoined(sent, reply); });
  // The callback shares ownership of the loop, as that of a heartbeat.
  parts_.transport.Join(
      server_, rejoin_, parts_.options.silence,
      [loop = parts_.loop, on_reply](absl::StatusOr<JoinReply> reply) {
        loop->Post([on_reply, reply = std::move(reply)]() mutable { on_reply(reply); });
      });
}

void ServerLink::OnJoined(absl::Time sent, absl::StatusOr<JoinReply> reply) {
  if (state_ != State::kJoining) return;
  state_ = State::kAway;
  if (!reply.ok()) return OnJoinError(reply.status());
  ToLocal(parts_.partition, *reply);
  const Generation generation{reply->generation()};
  if (!AcceptsGeneration(generation)) return;
  if (reply->run() != rejoin_.run()) {
    return OnJoinError(absl::FailedPreconditionError(
        absl::StrCat("lost its state: it belongs to another run (expected run ",
                     absl::Hex(rejoin_.run(), absl::kZeroPad16), ", got ",
                     absl::Hex(reply->run(), absl::kZeroPad16), ")")));
  }
  if (server_ == ServerId{0}) {
    absl::Status dealt = parts_.deals.Add(*reply);
    if (!dealt.ok()) return FailForDeals(dealt);
  }
  const absl::Time now = parts_.loop->Now();
  if (const auto more = return_lines_.Next(now)) {
    LOG(INFO) << parts_.transport.NameOf(server_)
              << absl::StrFormat(" came back after %.1f s",
                                 absl::ToDoubleSeconds(now - lost_since_))
              << *more;
  }
  parts_.report.Count(WorkerCounters::kRejoinsFieldNumber);
  const bool went_back = generation != generation_;
  if (went_back) Adopt(generation);
  for (const ShardState& state : reply->shards()) {
    const ShardId shard{state.shard()};
    // A shard is shut if the server begins again to wait for all workers. It refuses a push, but
    // answers a read when it opens.
    if (queue_.owns(shard) && (went_back || !state.open())) {
      queue_.ReadBeforePush(shard, Step{state.predecessor_next()});
    }
  }
  epoch_ = Epoch{reply->epoch()};
  state_ = State::kLost;
  backoff_.Reset();
  liveness_.CallAnswered(now);
  Confirm(sent);
  SendQueued();
}

void ServerLink::OnJoinError(const absl::Status& status) {
  liveness_.CallFailed(status);
  if (IsRetryable(status)) return;  // the next heartbeat's reply starts another Join
  if (absl::IsNotFound(status) && server_ != ServerId{0}) {
    // The lead announces this process to the server; the next heartbeat's reply starts another
    // Join.
    parts_.transport.Join(ServerId{0}, rejoin_, parts_.options.silence,
                          [](const absl::StatusOr<JoinReply>&) {});
    return;
  }
  const bool lost = absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
  observer_.OnFailure(WithServerName(parts_.transport, server_,
                                     lost ? absl::AbortedError(status.message()) : status));
}

}  // namespace thinwire::client
