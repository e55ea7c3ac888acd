#include "tests/clusters/job_server.h"

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/shards/session.h"

namespace thinwire {
namespace {

// Makes an asynchronous CALL to the job and blocks until the reply arrives.
template <typename Reply>
absl::StatusOr<Reply> Await(const std::function<void(Job::Done<Reply>)>& call) {
  absl::StatusOr<Reply> answer = absl::UnknownError("not answered");
  absl::Notification answered;
  call([&](absl::StatusOr<Reply> reply) {
    answer = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return answer;
}

}  // namespace

// The state of one stream. Only the thread of loop_ uses it.
struct JobServer::Call {
  Peer peer;
  std::unique_ptr<Session> session;
  int requested_count = 0;  // frames that the session has requested but not yet received
  std::deque<ByteChain> frames;
  bool broken = false;
};

JobServer::JobServer(Job& job) : job_(job), loop_(clock_) {}

JobServer::~JobServer() {
  // Lists the open streams on the thread of the event loop. The loop runs functions in order, so
  // calls_ then contains every stream that an earlier call of Opened() announced. Closed() ignores
  // a stream that has ended by itself in the meantime.
  std::vector<uint64_t> streams;
  loop_.Run([this, &streams] {
    absl::MutexLock lock(&mu_);
    for (const auto& [stream, call] : calls_) streams.push_back(stream);
  });
  for (const uint64_t stream : streams) Closed(stream);
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return calls_.empty(); };
  { absl::MutexLock lock(&mu_, absl::Condition(&ended)); }
  loop_.Stop();
}

void JobServer::Opened(uint64_t stream, Peer peer) {
  loop_.Post([this, stream, peer = std::move(peer)] {
    auto owned = std::make_unique<Call>();
    Call* call = owned.get();
    call->peer = peer;
    StreamLink link;
    link.read = [this, call] {
      loop_.Post([this, call] {
        ++call->requested_count;
        Deliver(*call);
      });
    };
    link.write = [this, call](const ByteChain& bytes) {
      call->peer.send(bytes);
      loop_.Post([call] { call->session->OnWritten(true); });
    };
    link.finish = [this, stream](const absl::Status& status) {
      loop_.Post([this, stream, status] { Finish(stream, status); });
    };
    {
      absl::MutexLock lock(&mu_);
      calls_[stream] = std::move(owned);
    }
    call->session = job_.Open(std::move(link));
    call->session->Start();
  });
}

void JobServer::Frame(uint64_t stream, const ByteChain& frame) {
  loop_.Post([this, stream, frame] {
    Call* call = nullptr;
    {
      absl::MutexLock lock(&mu_);
      const auto it = calls_.find(stream);
      if (it == calls_.end()) return;
      call = it->second.get();
    }
    call->frames.push_back(frame);
    Deliver(*call);
  });
}

void JobServer::Closed(uint64_t stream) {
  loop_.Post([this, stream] {
    Call* call = nullptr;
    {
      absl::MutexLock lock(&mu_);
      const auto it = calls_.find(stream);
      if (it == calls_.end()) return;
      call = it->second.get();
    }
    if (std::exchange(call->broken, true)) return;
    call->session->OnBroken();
  });
}

void JobServer::Deliver(Call& call) {
  while (!call.broken && call.requested_count > 0 && !call.frames.empty()) {
    const ByteChain frame = std::move(call.frames.front());
    call.frames.pop_front();
    --call.requested_count;
    call.session->OnFrame(frame);
  }
}

void JobServer::Finish(uint64_t stream, const absl::Status& status) {
  std::unique_ptr<Call> call;
  {
    absl::MutexLock lock(&mu_);
    call = std::move(calls_.at(stream));
  }
  call->peer.close(status);
  call->session.reset();
  call.reset();
  absl::MutexLock lock(&mu_);
  calls_.erase(stream);
}

absl::StatusOr<JoinReply> JobServer::Join(const JoinRequest& request) {
  return Await<JoinReply>([&](Job::Done<JoinReply> done) {
    job_.Join(
        request, [] { return false; }, std::move(done));
  });
}

absl::StatusOr<HeartbeatReply> JobServer::Heartbeat(const HeartbeatRequest& request) {
  return Await<HeartbeatReply>(
      [&](Job::Done<HeartbeatReply> done) { job_.Call(request, std::move(done)); });
}

absl::StatusOr<LeaveReply> JobServer::Leave(const LeaveRequest& request) {
  return Await<LeaveReply>(
      [&](Job::Done<LeaveReply> done) { job_.Call(request, std::move(done)); });
}

}  // namespace thinwire
