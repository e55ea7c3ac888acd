#include "client/transport/joining.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/join_leave.h"

namespace thinwire::client {

Joining::Joining(Transport& transport, std::shared_ptr<Executor> loop, JoinWait wait,
                 JoinRequest request, Generation least, Done done)
    : transport_(transport),
      loop_(std::move(loop)),
      wait_(std::move(wait)),
      request_(std::move(request)),
      least_(least),
      done_(std::move(done)),
      backoff_(WorkerId{request_.worker()}, ServerId{0}) {}

void Joining::Start() { StartRound(); }

void Joining::Cancel() {
  cancelled_ = true;
  if (leaving_ != nullptr) leaving_->Hurry();
  if (state_ != State::kCalling && state_ != State::kPausing) return;
  ++serial_;
  EndRound(Stopped());
}

absl::Status Joining::Stopped() const {
  return WithServerName(transport_, server(), absl::CancelledError("stopped while joining"));
}

void Joining::StartRound() {
  replies_.clear();
  if (cancelled_) return Finish(Stopped());
  call_ = request_;
  was_behind_ = false;
  StartServer();
}

void Joining::StartServer() {
  backoff_ = Backoff(WorkerId{request_.worker()}, server());
  begin_ = loop_->Now();
  next_notice_ = begin_ + wait_.first_notice;
  Call();
}

void Joining::Call() {
  state_ = State::kCalling;
  const bool new_process = server() == ServerId{0} && call_.incarnation() == 0;
  problem_ = new_process ? absl::StrCat(
                               "no answer yet; it waits for the end of the lease of an earlier "
                               "process of worker ",
                               call_.worker(), " if there was one")
                         : "no answer yet";
  auto on_reply = scope_.Bind([this, serial = ++serial_](absl::StatusOr<JoinReply> reply) {
    if (serial == serial_) OnReply(std::move(reply));
  });
  transport_.Join(
      server(), call_, wait_.call_timeout,
      [loop = loop_, on_reply](absl::StatusOr<JoinReply> reply) {
        loop->Post([on_reply, reply = std::move(reply)]() mutable { on_reply(std::move(reply)); });
      });
  Notice();
}

void Joining::OnReply(absl::StatusOr<JoinReply> reply) {
  if (!reply.ok()) return RetryAfter(reply.status());
  if (reply->by_round() && Generation{reply->generation()} < least_) {
    was_behind_ = true;
    return RetryAfter(absl::UnavailableError(
        absl::StrCat("has not continued from the earlier step yet (expected generation ",
                     least_.value, ", got ", reply->generation(), ")")));
  }
  OnJoined(*std::move(reply));
}

void Joining::OnJoined(JoinReply reply) {
  const Generation generation{reply.generation()};
  const bool is_lead = replies_.empty();
  if (is_lead) {
    call_.set_incarnation(reply.incarnation());
    call_.set_run(reply.run());
  }
  const bool ahead = !is_lead && reply.by_round() && generation > least_;
  least_ = std::max(least_, generation);
  replies_.push_back(std::move(reply));
  if (ahead) return EndRound(absl::OkStatus());
  if (replies_.size() == request_.servers()) return Finish(std::move(replies_));
  StartServer();
}

void Joining::RetryAfter(const absl::Status& status) {
  absl::Status named = WithServerName(transport_, server(), status);
  const bool in_use = absl::IsAlreadyExists(named) && wait_.in_use_timeout > absl::ZeroDuration();
  if (!in_use && !IsRetryable(named)) return EndRound(std::move(named));
  const absl::Duration pause = backoff_.Next();
  const absl::Duration tried = loop_->Now() - begin_;
  if (tried + pause >= (in_use ? wait_.in_use_timeout : wait_.start_timeout)) {
    return EndRound(absl::Status(
        named.code(),
        absl::StrCat(named.message(), "; worker ", request_.worker(), " tried to join for ",
                     absl::FormatDuration(absl::Trunc(tried, absl::Milliseconds(1))))));
  }
  state_ = State::kPausing;
  problem_ = std::string(status.message());
  loop_->PostAt(loop_->Now() + pause, scope_.Bind([this, serial = ++serial_] {
    if (serial == serial_) Call();
  }));
  Notice();
}

void Joining::EndRound(absl::Status reason) {
  state_ = State::kLeaving;
  // A process that keeps its incarnation must not leave, because it could not return.
  const bool may_return = reason.ok() && request_.incarnation() != 0;
  if (replies_.empty() || may_return) return AfterRound(reason);
  LeaveThen([this, reason] { AfterRound(reason); });
}

void Joining::LeaveThen(std::function<void()> then) {
  LeaveRequest leave;
  leave.set_worker(request_.worker());
  leave.set_incarnation(replies_[0].incarnation());
  leave.set_run(replies_[0].run());
  std::vector<ServerId> servers;
  for (uint32_t s = 0; s < replies_.size(); ++s) servers.push_back(ServerId{s});
  leaving_ = std::make_unique<Leaving>(
      transport_, loop_, absl::ZeroDuration(), std::move(servers), std::move(leave),
      [this, then = std::move(then)](const absl::Status& left) {
        if (!left.ok()) LOG(WARNING) << "leaving after an incomplete Join: " << left.message();
        then();
      });
  leaving_->Start();
}

void Joining::AfterRound(const absl::Status& reason) {
  if (!reason.ok()) {
    // A server may have forgotten the incarnation, because it continues from a step before the
    // incarnation was assigned.
    const bool forgotten =
        absl::IsNotFound(reason) ||
        (absl::IsFailedPrecondition(reason) && (request_.incarnation() != 0 || was_behind_));
    if (!forgotten) return Finish(reason);
    request_.set_incarnation(0);
  }
  StartRound();
}

void Joining::Finish(absl::StatusOr<std::vector<JoinReply>> result) {
  state_ = State::kDone;
  const Done done = std::move(done_);  // DONE may destroy this object
  done(std::move(result));
}

void Joining::Notice() {
  const absl::Time now = loop_->Now();
  if (now >= next_notice_) {
    const std::string text =
        absl::StrCat("waiting for ", transport_.NameOf(server()), ": ", problem_);
    LOG(WARNING) << text;
    wait_.report(text);
    next_notice_ = now + wait_.notice_interval;
  }
  ScheduleNotice();
}

void Joining::ScheduleNotice() {
  if (next_notice_ == absl::InfiniteFuture()) return;
  loop_->PostAt(next_notice_, scope_.Bind([this, serial = serial_] {
    if (serial == serial_) Notice();
  }));
}

}  // namespace thinwire::client
