#include "client/transport/leaving.h"

#include <utility>

#include "client/transport/join_leave.h"

namespace thinwire::client {
namespace {

// The timeout of a Leave call. A worker that stops or has failed ends after this time at the
// latest.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);

}  // namespace

Leaving::Leaving(Transport& transport, std::shared_ptr<Executor> loop, absl::Duration patience,
                 std::vector<ServerId> servers, LeaveRequest request, Done done)
    : transport_(transport),
      loop_(std::move(loop)),
      patience_(patience),
      servers_(std::move(servers)),
      request_(std::move(request)),
      done_(std::move(done)),
      backoff_(WorkerId{request_.worker()}, ServerId{0}) {}

void Leaving::Start() {
  end_ = loop_->Now() + patience_;
  CallAll();
}

void Leaving::Hurry() {
  hurried_ = true;
  if (std::exchange(pausing_, false)) loop_->Post(scope_.Bind([this] { Finish(unreachable_); }));
}

void Leaving::CallAll() {
  pausing_ = false;
  statuses_.assign(servers_.size(), absl::OkStatus());
  unanswered_count_ = servers_.size();
  if (servers_.empty()) return loop_->Post(scope_.Bind([this] { AfterCalls(); }));
  for (size_t i = 0; i < servers_.size(); ++i) {
    auto on_reply = scope_.Bind([this, i](const absl::Status& status) { OnReply(i, status); });
    transport_.Leave(
        servers_[i], request_, kLeaveTimeout,
        [loop = loop_, on_reply](const absl::StatusOr<LeaveReply>& reply) {
          loop->Post([on_reply, status = reply.status()]() mutable { on_reply(status); });
        });
  }
}

void Leaving::OnReply(size_t index, const absl::Status& status) {
  statuses_[index] = status;
  if (--unanswered_count_ == 0) AfterCalls();
}

void Leaving::AfterCalls() {
  std::vector<ServerId> again;
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (statuses_[i].ok()) continue;
    absl::Status status = WithServerName(transport_, servers_[i], statuses_[i]);
    if (!IsRetryable(status)) {
      refused_ = std::move(status);
      continue;
    }
    again.push_back(servers_[i]);
    unreachable_ = std::move(status);
  }
  if (again.empty()) return Finish(refused_);
  const absl::Time at = loop_->Now() + backoff_.Next();
  if (hurried_ || at >= end_) return Finish(unreachable_);
  servers_ = std::move(again);
  pausing_ = true;
  loop_->PostAt(at, scope_.Bind([this] {
    if (pausing_) CallAll();
  }));
}

void Leaving::Finish(const absl::Status& status) {
  const Done done = std::move(done_);  // DONE may destroy this object
  done(status);
}

}  // namespace thinwire::client
