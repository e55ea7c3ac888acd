// Heartbeats: calls Heartbeat of one server again and again, with at most one call pending, so that
// a slow server delays no heartbeat to another one.
//
//                          SendNow
//              interval   +-------------------------+
//   kWaiting --SendNow--> kPending                  v
//      ^                      | reply        kPendingAgain
//      +----------------------+                     | reply: the next call follows at once
//                                                   +--> kPending
//   kStopped: after Stop
#ifndef THINWIRE_CLIENT_EXCHANGE_HEARTBEATS_H_
#define THINWIRE_CLIENT_EXCHANGE_HEARTBEATS_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/exchange/exchange_parts.h"
#include "common/base/ids.h"
#include "common/time/task_scope.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Lives on the event loop `parts.loop`: only tasks of this loop call its functions.
class Heartbeats {
 public:
  using MakeRequest = std::function<HeartbeatRequest()>;
  // Receives the reply or the error of the call of REQUEST that began at SENT.
  using OnReply = std::function<void(absl::Time sent, const HeartbeatRequest& request,
                                     const absl::StatusOr<HeartbeatReply>& reply)>;

  // INTERVAL: the time from the beginning of a call to that of the next one. PARTS must outlive
  // this object.
  Heartbeats(const ExchangeParts& parts, ServerId server, absl::Duration interval,
             MakeRequest make_request, OnReply on_reply);

  // Sends the next heartbeat now, or as soon as the pending one is answered. The first call starts
  // the heartbeats.
  void SendNow();
  // Sends no further heartbeat and ignores the pending reply.
  void Stop() { state_ = State::kStopped; }
  // During a call of OnReply, returns whether the heartbeat before the answered one has failed.
  bool after_failure() const { return failed_; }

 private:
  enum class State { kWaiting, kPending, kPendingAgain, kStopped };

  void Send();
  void Answered(absl::Time sent, const HeartbeatRequest& request,
                const absl::StatusOr<HeartbeatReply>& reply);

  const ExchangeParts& parts_;
  const ServerId server_;
  const absl::Duration interval_;
  const absl::Duration timeout_;
  const MakeRequest make_request_;
  const OnReply on_reply_;
  State state_ = State::kWaiting;
  uint64_t count_ = 0;  // heartbeats sent
  bool failed_ = false;
  const TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_HEARTBEATS_H_
