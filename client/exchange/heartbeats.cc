#include "client/exchange/heartbeats.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/time/trace.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kLongestTimeout = absl::Seconds(2);

// Measures the offset of a server's clock by a call that begins now.
class ClockCall {
 public:
  // TRACER may be null. It outlives the call.
  ClockCall(Tracer* tracer, ServerId server)
      : tracer_(tracer), server_(server), sent_(tracer == nullptr ? absl::Time() : tracer->Now()) {}

  // The server has answered with the time of its clock; 0: it has stated none.
  void Answered(int64_t unix_micros) const {
    if (tracer_ == nullptr || unix_micros == 0) return;
    tracer_->AddClockSample(absl::StrCat("server ", server_.value), sent_, tracer_->Now(),
                            absl::FromUnixMicros(unix_micros));
  }

 private:
  Tracer* tracer_;
  ServerId server_;
  absl::Time sent_;
};

}  // namespace

Heartbeats::Heartbeats(const ExchangeParts& parts, ServerId server, absl::Duration interval,
                       MakeRequest make_request, OnReply on_reply)
    : parts_(parts),
      server_(server),
      interval_(interval),
      timeout_(std::min(parts.options.silence, kLongestTimeout)),
      make_request_(std::move(make_request)),
      on_reply_(std::move(on_reply)) {}

void Heartbeats::SendNow() {
  if (state_ == State::kWaiting) {
    Send();
  } else if (state_ == State::kPending) {
    state_ = State::kPendingAgain;
  }
}

void Heartbeats::Send() {
  state_ = State::kPending;
  ++count_;
  const HeartbeatRequest request = make_request_();
  auto answered = scope_.Bind([this, sent = parts_.loop->Now(), request](const auto& reply) {
    Answered(sent, request, reply);
  });
  // The callback shares ownership of the loop, because the reply may arrive after the end of this
  // object.
  parts_.transport.Heartbeat(
      server_, request, timeout_,
      [loop = parts_.loop, answered,
       clock = ClockCall(parts_.options.tracer, server_)](absl::StatusOr<HeartbeatReply> reply) {
        if (reply.ok()) clock.Answered(reply->unix_micros());
        loop->Post([answered, reply = std::move(reply)]() mutable { answered(reply); });
      });
}

void Heartbeats::Answered(absl::Time sent, const HeartbeatRequest& request,
                          const absl::StatusOr<HeartbeatReply>& reply) {
  if (state_ == State::kStopped) return;
  on_reply_(sent, request, reply);  // may call SendNow or Stop
  failed_ = !reply.ok();
  if (state_ == State::kStopped) return;
  if (state_ == State::kPendingAgain) return Send();
  state_ = State::kWaiting;
  parts_.loop->PostAt(sent + interval_, scope_.Bind([this, count = count_] {
    // SendNow may have sent the heartbeat already.
    if (state_ == State::kWaiting && count == count_) Send();
  }));
}

}  // namespace thinwire::client
