// Heartbeats: tells every server at a steady pace that this worker is there, and hears that the
// server is. One call per server is under way at a time, so a slow one delays no other's.
#ifndef THINWIRE_CLIENT_HEARTBEATS_H_
#define THINWIRE_CLIENT_HEARTBEATS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/loop.h"
#include "client/transport.h"
#include "common/ids.h"

namespace thinwire::client {

// Lives on its loop; it is destroyed when the loop has stopped.
class Heartbeats {
 public:
  using Heard = std::function<void(ServerId, const absl::StatusOr<HeartbeatReply>&)>;

  // Asks server i with REQUESTS[i], every INTERVAL. TRANSPORT outlives this. HEARD is called on
  // the loop.
  Heartbeats(Transport& transport, std::shared_ptr<Loop> loop,
             std::vector<HeartbeatRequest> requests, absl::Duration interval,
             absl::Duration timeout, Heard heard);

  void Start();
  void Stop() { stopped_ = true; }

 private:
  void Send(ServerId server);
  void OnReply(ServerId server, absl::Time sent, const absl::StatusOr<HeartbeatReply>& reply);

  Transport& transport_;
  const std::shared_ptr<Loop> loop_;  // a late reply finds the loop, stopped, and is dropped
  const std::vector<HeartbeatRequest> requests_;
  const absl::Duration interval_;
  const absl::Duration timeout_;
  const Heard heard_;
  bool stopped_ = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_HEARTBEATS_H_
