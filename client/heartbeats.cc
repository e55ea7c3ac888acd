#include "client/heartbeats.h"

#include <utility>

namespace thinwire::client {

Heartbeats::Heartbeats(Transport& transport, std::shared_ptr<Loop> loop,
                       std::vector<HeartbeatRequest> requests, absl::Duration interval,
                       absl::Duration timeout, Heard heard)
    : transport_(transport),
      loop_(std::move(loop)),
      requests_(std::move(requests)),
      interval_(interval),
      timeout_(timeout),
      heard_(std::move(heard)) {}

void Heartbeats::Start() {
  for (uint32_t s = 0; s < requests_.size(); ++s) Send(ServerId{s});
}

void Heartbeats::Send(ServerId server) {
  if (stopped_) return;
  transport_.Heartbeat(
      server, requests_[server.value], timeout_,
      [this, loop = loop_, server, sent = loop_->Now()](absl::StatusOr<HeartbeatReply> reply) {
        loop->Post(
            [this, server, sent, reply = std::move(reply)] { OnReply(server, sent, reply); });
      });
}

void Heartbeats::OnReply(ServerId server, absl::Time sent,
                         const absl::StatusOr<HeartbeatReply>& reply) {
  if (stopped_) return;
  heard_(server, reply);
  loop_->PostAt(sent + interval_, [this, server] { Send(server); });
}

}  // namespace thinwire::client
