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
      done_(std::move(done)) {}

void Joining::Start() { StartRound(); }

void Joining::Cancel() {
  cancelled_ = true;
  if (leaving_ != nullptr) leaving_->Hurry();
  if (state_ == State::kJoining) EndRound(Stopped());
}

absl::Status Joining::Stopped() const {
  const auto missing = std::ranges::find_if(
      servers_, [](const Server& server) { return !server.reply.has_value(); });
  const ServerId server{static_cast<uint32_t>(missing - servers_.begin())};
  return WithServerName(transport_, server, absl::CancelledError("stopped while joining"));
}

void Joining::StartRound() {
  servers_.clear();
  if (cancelled_) return Finish(Stopped());
  state_ = State::kJoining;
  call_ = request_;
  was_behind_ = false;
  for (uint32_t s = 0; s < request_.servers(); ++s) {
    servers_.push_back({.backoff = Backoff(WorkerId{request_.worker()}, ServerId{s})});
  }
  StartServers(0, 1);
}

void Joining::StartServers(uint32_t first, uint32_t end) {
  begin_ = loop_->Now();
  next_notice_ = begin_ + wait_.first_notice;
  for (uint32_t s = first; s < end; ++s) Call(s);
  notices_.emplace();
  ScheduleNotice();
}

void Joining::Call(uint32_t server) {
  Server& called = servers_[server];
  called.calling = true;
  called.serial = ++serial_;
  const bool new_process = server == 0 && call_.incarnation() == 0;
  called.problem = new_process ? absl::StrCat(
                                     "no answer yet; it waits for the end of the lease of an "
                                     "earlier process of worker ",
                                     call_.worker(), " if there was one")
                               : "no answer yet";
  auto on_reply =
      scope_.Bind([this, server, serial = called.serial](absl::StatusOr<JoinReply> reply) {
        if (serial == servers_[server].serial) OnReply(server, std::move(reply));
      });
  transport_.Join(
      ServerId{server}, call_, wait_.call_timeout,
      [loop = loop_, on_reply](absl::StatusOr<JoinReply> reply) {
        loop->Post([on_reply, reply = std::move(reply)]() mutable { on_reply(std::move(reply)); });
      });
  Notice();
}

void Joining::OnReply(uint32_t server, absl::StatusOr<JoinReply> reply) {
  servers_[server].calling = false;
  if (!reply.ok()) return RetryAfter(server, reply.status());
  if (reply->by_round() && Generation{reply->generation()} < least_) {
    was_behind_ = true;
    return RetryAfter(server,
                      absl::UnavailableError(absl::StrCat(
                          "has not continued from the earlier step yet (expected generation ",
                          least_.value, ", got ", reply->generation(), ")")));
  }
  OnJoined(server, *std::move(reply));
}

void Joining::OnJoined(uint32_t server, JoinReply reply) {
  const Generation generation{reply.generation()};
  const bool is_lead = server == 0;
  if (is_lead) {
    call_.set_incarnation(reply.incarnation());
    call_.set_run(reply.run());
  }
  const bool ahead = !is_lead && reply.by_round() && generation > least_;
  least_ = std::max(least_, generation);
  servers_[server].reply = std::move(reply);
  if (ahead) return EndRound(absl::OkStatus());
  if (is_lead && servers_.size() > 1) return StartServers(1, request_.servers());
  std::vector<JoinReply> replies;
  for (const Server& joined : servers_) {
    if (!joined.reply.has_value()) return;
    replies.push_back(*joined.reply);
  }
  Finish(std::move(replies));
}

void Joining::RetryAfter(uint32_t server, const absl::Status& status) {
  absl::Status named = WithServerName(transport_, ServerId{server}, status);
  const bool in_use = absl::IsAlreadyExists(named) && wait_.in_use_timeout > absl::ZeroDuration();
  if (!in_use && !IsRetryable(named)) return EndRound(std::move(named));
  Server& failed = servers_[server];
  const absl::Duration pause = failed.backoff.Next();
  const absl::Duration tried = loop_->Now() - begin_;
  if (tried + pause >= (in_use ? wait_.in_use_timeout : wait_.start_timeout)) {
    return EndRound(absl::Status(
        named.code(),
        absl::StrCat(named.message(), "; worker ", request_.worker(), " tried to join for ",
                     absl::FormatDuration(absl::Trunc(tried, absl::Milliseconds(1))))));
  }
  failed.problem = std::string(status.message());
  failed.serial = ++serial_;
  loop_->PostAt(loop_->Now() + pause, scope_.Bind([this, server, serial = failed.serial] {
    if (serial == servers_[server].serial) Call(server);
  }));
  Notice();
}

void Joining::EndRound(absl::Status reason) {
  state_ = State::kLeaving;
  notices_.reset();
  for (Server& server : servers_) server.serial = 0;
  // A process that keeps its incarnation must not leave, because it could not return.
  const bool may_return = reason.ok() && request_.incarnation() != 0;
  if (!servers_[0].reply.has_value() || may_return) return AfterRound(reason);
  LeaveThen([this, reason] { AfterRound(reason); });
}

void Joining::LeaveThen(std::function<void()> then) {
  LeaveRequest leave;
  leave.set_worker(request_.worker());
  leave.set_member(request_.member());
  leave.set_incarnation(servers_[0].reply->incarnation());
  leave.set_run(servers_[0].reply->run());
  std::vector<ServerId> servers;
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].reply.has_value() || servers_[s].calling) servers.push_back(ServerId{s});
  }
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
  notices_.reset();
  const Done done = std::move(done_);  // DONE may destroy this object
  done(std::move(result));
}

void Joining::Notice() {
  const absl::Time now = loop_->Now();
  if (now < next_notice_) return;
  std::string text;
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].serial == 0 || servers_[s].reply.has_value()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", "waiting for ", transport_.NameOf(ServerId{s}),
                    ": ", servers_[s].problem);
  }
  LOG(WARNING) << text;
  wait_.report(text);
  next_notice_ = now + wait_.notice_interval;
}

void Joining::ScheduleNotice() {
  if (next_notice_ == absl::InfiniteFuture()) return;
  loop_->PostAt(next_notice_, notices_->Bind([this] {
    Notice();
    ScheduleNotice();
  }));
}

}  // namespace thinwire::client
