#include "server/shards/stream/server_stream.h"

#include <algorithm>
#include <utility>

namespace thinwire {
namespace {

// The limit on queued messages to the peer: verdicts, parameters and waiting notices. While more
// are queued, the stream accepts no frame. One frame from the peer causes at most kMostEntries of
// them, so a longer queue shows that the peer does not receive what was sent to it.
constexpr size_t kFullOutbox = kMostEntries;

}  // namespace

void SerialExecutor::Run(absl::AnyInvocable<void()> work) {
  {
    absl::MutexLock lock(&mu_);
    waiting_.push_back(std::move(work));
    if (running_) return;
    running_ = true;
  }
  for (;;) {
    absl::AnyInvocable<void()> next;
    {
      absl::MutexLock lock(&mu_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  }
}

StreamBatch::~StreamBatch() {
  for (const std::shared_ptr<ServerStream>& stream : streams_) stream->Send();
}

void StreamBatch::Add(std::shared_ptr<ServerStream> stream) {
  absl::MutexLock lock(&mu_);
  if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(std::move(stream));
}

ServerStream::ServerStream(StreamLink link, Generation generation, Epoch epoch,
                           std::function<void(uint64_t, uint64_t)> count_sent)
    : link_(std::move(link)),
      generation_(generation),
      epoch_(epoch),
      count_sent_(std::move(count_sent)) {}

void ServerStream::AddVerdict(const VerdictEntry& verdict, StreamBatch* batch) {
  serial_.Run([this, verdict, sends = batch == nullptr] {
    if (!ending_) outbox_.AddVerdict(verdict);
    if (sends) Advance();
  });
  if (batch != nullptr) batch->Add(shared_from_this());
}

void ServerStream::AddAnswer(ShardId shard, Step step, const ReadForm& form,
                             std::shared_ptr<const PublishedSlots> slots, StepsAhead ahead,
                             StreamBatch* batch) {
  serial_.Run([this, shard, step, form, slots = std::move(slots), ahead, sends = batch == nullptr] {
    if (!ending_) outbox_.AddAnswer(shard, step, form, slots, ahead);
    if (sends) Advance();
  });
  if (batch != nullptr) batch->Add(shared_from_this());
}

void ServerStream::Send() {
  serial_.Run([this] { Advance(); });
}

void ServerStream::AddWaiting(const WaitingEntry& wait) {
  serial_.Run([this, wait] {
    if (!ending_) outbox_.AddWaiting(wait);
    Advance();
  });
}

void ServerStream::AllowRead() {
  serial_.Run([this] {
    read_wanted_ = true;
    Advance();
  });
}

void ServerStream::OnWritten(bool ok) {
  serial_.Run([this, ok] {
    writing_ = false;
    if (!ok) {
      outbox_ = StreamOutbox();
      if (!ending_) end_ = absl::CancelledError("the stream broke");
      ending_ = true;
    }
    Advance();
  });
}

void ServerStream::EndAfterFlush(absl::Status status) {
  serial_.Run([this, status = std::move(status)] {
    if (!ending_) end_ = status;
    ending_ = true;
    Advance();
  });
}

void ServerStream::End(absl::Status status) {
  serial_.Run([this, status = std::move(status)] {
    if (!ending_) end_ = status;
    ending_ = true;
    outbox_ = StreamOutbox();
    Advance();
  });
}

bool ServerStream::TakeTurn(Turn ServerStream::*turn,
                            const std::function<void(absl::AnyInvocable<void()>)>& await) {
  if (await == nullptr) return true;
  if (this->*turn == Turn::kHeld) {
    this->*turn = Turn::kNone;
    return true;
  }
  if (std::exchange(this->*turn, Turn::kAwaited) == Turn::kNone) {
    await([weak = weak_from_this(), turn] {
      const std::shared_ptr<ServerStream> stream = weak.lock();
      if (stream == nullptr) return;
      stream->serial_.Run([self = stream.get(), turn] {
        self->*turn = Turn::kHeld;
        self->Advance();
      });
    });
  }
  return false;
}

void ServerStream::Advance() {
  if (finished_) return;
  // The message is made when it may begin, so that it has the newest parameters.
  if (!writing_ && !outbox_.empty() && TakeTurn(&ServerStream::write_turn_, link_.await_write)) {
    WriteNext();
  }
  if (ending_ && !writing_ && outbox_.empty()) {
    finished_ = true;
    link_.finish(end_);
    return;
  }
  if (!ending_ && read_wanted_ && outbox_.entry_count() < kFullOutbox &&
      TakeTurn(&ServerStream::read_turn_, link_.await_read)) {
    read_wanted_ = false;
    link_.read();
  }
}

void ServerStream::WriteNext() {
  ServerFrame frame = outbox_.Next();
  frame.generation = generation_;
  frame.epoch = epoch_;
  uint64_t payload_bytes = 0;
  for (const ParametersEntry& entry : frame.parameters) payload_bytes += entry.payload.size();
  const ByteChain message = WriteFrame(frame);
  count_sent_(message.size(), payload_bytes);
  writing_ = true;
  link_.write(message);
}

}  // namespace thinwire
