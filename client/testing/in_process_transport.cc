#include "client/testing/in_process_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

absl::Status Refused() { return absl::UnavailableError("connection refused"); }

absl::Status TimedOut(absl::Duration timeout) {
  return absl::DeadlineExceededError(
      absl::StrCat("no answer (timeout ", absl::FormatDuration(timeout), ")"));
}

}  // namespace

// The worker's end of a stream. A task of the transport's event loop assigns the stream's number
// when it connects the stream, and only tasks of this loop read and write the number.
class InProcessTransport::InProcessStream final : public FrameStream {
 public:
  InProcessStream(InProcessTransport& transport, ServerId server, StreamObserver& observer)
      : transport_(transport), number_(std::make_shared<uint64_t>(0)) {
    transport_.loop_->Post([&transport, number = number_, server, &observer] {
      *number = transport.next_number_++;
      transport.Connect(*number, server, &observer);
    });
  }

  // Removes the observer in a task of the loop, because the loop makes all calls to the observer.
  ~InProcessStream() override {
    transport_.loop_->Run([this] {
      const auto connection = transport_.connections_.find(*number_);
      if (connection == transport_.connections_.end()) return;
      const ServerId server = connection->second.server;
      transport_.connections_.erase(connection);
      transport_.servers_[server.value]->Closed(*number_);
    });
  }

  void Write(ByteChain frame) override {
    transport_.loop_->Post([&transport = transport_, number = number_, frame = std::move(frame)] {
      transport.ToServer(*number, frame);
    });
  }

  void ReadNext() override {
    transport_.loop_->Post([&transport = transport_, number = number_] {
      const auto connection = transport.connections_.find(*number);
      if (connection == transport.connections_.end()) return;
      ++connection->second.requested_count;
      transport.Deliver(*number);
    });
  }

 private:
  InProcessTransport& transport_;
  const std::shared_ptr<uint64_t> number_;
};

InProcessTransport::InProcessTransport(std::vector<InProcessServer*> servers)
    : servers_(std::move(servers)),
      threads_(std::make_unique<Threads>()),
      faults_(servers_.size()),
      loop_(threads_->Make()),
      membership_loop_(threads_->Make()) {}

InProcessTransport::InProcessTransport(std::vector<InProcessServer*> servers, ExecutorFactory& time)
    : servers_(std::move(servers)),
      faults_(servers_.size()),
      loop_(time.Make()),
      membership_loop_(time.Make()) {}

InProcessTransport::~InProcessTransport() {
  membership_loop_->Stop();
  loop_->Stop();
}

std::string InProcessTransport::NameOf(ServerId server) const {
  return absl::StrCat("server ", server.value, " (in process)");
}

std::unique_ptr<FrameStream> InProcessTransport::Open(ServerId server, StreamObserver& observer) {
  return std::make_unique<InProcessStream>(*this, server, observer);
}

void InProcessTransport::Connect(uint64_t number, ServerId server, StreamObserver* observer) {
  if (faults_[server.value].refuse) {
    observer->OnClosed(Refused());
    return;
  }
  connections_[number] = {.server = server, .observer = observer};
  const auto send = [this, loop = loop_, number](ByteChain frame) {
    loop->Post([this, number, frame = std::move(frame)] { ToWorker(number, frame); });
  };
  const auto close = [this, loop = loop_, number](absl::Status status) {
    loop->Post([this, number, status = std::move(status)] { CloseByServer(number, status); });
  };
  servers_[server.value]->Opened(number, {.send = send, .close = close});
}

void InProcessTransport::ToServer(uint64_t number, const ByteChain& frame) {
  const auto connection = connections_.find(number);
  if (connection == connections_.end()) return;
  Faults& faults = faults_[connection->second.server.value];
  if (faults.mute) return;
  InProcessServer& server = *servers_[connection->second.server.value];
  connection->second.observer->OnWritten();
  server.Frame(number, frame);
  if (faults.repeat_count > 0) {
    --faults.repeat_count;
    server.Frame(number, frame);
  }
}

void InProcessTransport::ToWorker(uint64_t number, ByteChain frame) {
  const auto connection = connections_.find(number);
  if (connection == connections_.end()) return;
  Faults& faults = faults_[connection->second.server.value];
  if (faults.mute) return;
  if (faults.lose_count > 0) {
    --faults.lose_count;
    Break(number, absl::UnavailableError("connection reset"));
    return;
  }
  connection->second.waiting.push_back(std::move(frame));
  Deliver(number);
}

void InProcessTransport::Deliver(uint64_t number) {
  Connection& connection = connections_.at(number);
  if (faults_[connection.server.value].hold) return;
  while (connection.requested_count > 0 && !connection.waiting.empty()) {
    ByteChain frame = std::move(connection.waiting.front());
    connection.waiting.erase(connection.waiting.begin());
    --connection.requested_count;
    connection.observer->OnFrame(std::move(frame));
  }
}

void InProcessTransport::Break(uint64_t number, const absl::Status& status) {
  const Connection connection = std::move(connections_.at(number));
  connections_.erase(number);
  servers_[connection.server.value]->Closed(number);
  connection.observer->OnClosed(status);
}

void InProcessTransport::CloseByServer(uint64_t number, const absl::Status& status) {
  const auto connection = connections_.find(number);
  if (connection == connections_.end()) return;
  StreamObserver* observer = connection->second.observer;
  connections_.erase(connection);
  observer->OnClosed(status);
}

void InProcessTransport::BreakAll(ServerId server) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, connection] : connections_) {
    if (connection.server == server) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) Break(number, absl::UnavailableError("connection reset"));
}

template <typename Reply>
void InProcessTransport::Call(Executor& loop, ServerId server, absl::Duration timeout,
                              std::function<absl::StatusOr<Reply>(InProcessServer&)> call,
                              Done<Reply> done) {
  loop_->Post([this, &loop, server, timeout, call = std::move(call), done = std::move(done)] {
    const Faults& faults = faults_[server.value];
    if (faults.mute) {
      loop_->PostAt(loop_->Now() + timeout, [timeout, done] { done(TimedOut(timeout)); });
    } else if (faults.refuse) {
      done(Refused());
    } else {
      loop.Post([&to = *servers_[server.value], call, done] { done(call(to)); });
    }
  });
}

void InProcessTransport::Join(ServerId server, const JoinRequest& request, absl::Duration timeout,
                              Done<JoinReply> done) {
  Call<JoinReply>(
      *membership_loop_, server, timeout,
      [request](InProcessServer& to) { return to.Join(request); }, std::move(done));
}

void InProcessTransport::Heartbeat(ServerId server, const HeartbeatRequest& request,
                                   absl::Duration timeout, Done<HeartbeatReply> done) {
  Call<HeartbeatReply>(
      *loop_, server, timeout, [request](InProcessServer& to) { return to.Heartbeat(request); },
      std::move(done));
}

void InProcessTransport::Leave(ServerId server, const LeaveRequest& request, absl::Duration timeout,
                               Done<LeaveReply> done) {
  Call<LeaveReply>(
      *membership_loop_, server, timeout,
      [request](InProcessServer& to) { return to.Leave(request); }, std::move(done));
}

void InProcessTransport::Masters(ServerId server, const MastersRequest& request,
                                 uint64_t most_bytes, absl::Duration timeout,
                                 Done<std::vector<MastersChunk>> done) {
  using Chunks = absl::StatusOr<std::vector<MastersChunk>>;
  Call<std::vector<MastersChunk>>(
      *membership_loop_, server, timeout,
      [request, most_bytes](InProcessServer& to) -> Chunks {
        Chunks chunks = to.Masters(request);
        if (!chunks.ok()) return chunks;
        MastersSize size(most_bytes);
        for (const MastersChunk& chunk : *chunks) RETURN_IF_ERROR(size.Add(chunk));
        return chunks;
      },
      std::move(done));
}

void InProcessTransport::DropStreams(ServerId server) {
  loop_->Run([this, server] { BreakAll(server); });
}

void InProcessTransport::Refuse(ServerId server, bool refuse) {
  loop_->Run([this, server, refuse] {
    faults_[server.value].refuse = refuse;
    if (refuse) BreakAll(server);
  });
}

void InProcessTransport::Mute(ServerId server, bool mute) {
  loop_->Run([this, server, mute] { faults_[server.value].mute = mute; });
}

void InProcessTransport::Hold(ServerId server, bool hold) {
  loop_->Run([this, server, hold] {
    faults_[server.value].hold = hold;
    for (const auto& [number, connection] : connections_) {
      if (connection.server == server) Deliver(number);
    }
  });
}

void InProcessTransport::LoseReplies(ServerId server, int count) {
  loop_->Run([this, server, count] { faults_[server.value].lose_count = count; });
}

void InProcessTransport::RepeatFrames(ServerId server, int count) {
  loop_->Run([this, server, count] { faults_[server.value].repeat_count = count; });
}

}  // namespace thinwire
