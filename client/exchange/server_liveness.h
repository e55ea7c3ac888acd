// ServerLiveness: detects that a server stopped responding. It is a pure state machine: callers
// pass the current time.
//
//   kSilent     no message and no heartbeat for longer than the limit
//   kRefusing   heartbeats arrive, but the server has accepted no stream for longer than the limit
//
// A "still waiting for worker 3" message counts as a sign of life, so a slow round never times out;
// only silence does.
#ifndef THINWIRE_CLIENT_EXCHANGE_SERVER_LIVENESS_H_
#define THINWIRE_CLIENT_EXCHANGE_SERVER_LIVENESS_H_

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace thinwire::client {

enum class ServerState { kSilent, kRefusing };

// The reason for an outage and its duration.
struct ServerOutage {
  ServerState state;
  absl::Duration duration;
  absl::Status last_error;  // of the stream or a heartbeat; OK if neither has failed
};

// Returns the index of the longest outage, or nullopt if all servers respond.
std::optional<size_t> LongestOutage(std::span<const std::optional<ServerOutage>> outages);

// Not thread-safe.
class ServerLiveness {
 public:
  // The server counts as responding at NOW.
  ServerLiveness(absl::Duration limit, absl::Time now)
      : limit_(limit), last_sign_(now), stream_up_since_(now) {}

  void HeartbeatAnswered(absl::Time now);
  void HeartbeatFailed(absl::Status error);
  // The stream delivered a message, which proves that it works in both directions.
  void MessageReceived(absl::Time now);
  // The stream accepted a message. The server may still close the stream at once.
  void MessageAccepted(absl::Time now);
  void StreamLost(absl::Time now, absl::Status error);

  // Restarts all measurements at NOW. Call this after the client's own process was suspended: that
  // time does not count as silence of the server.
  void Restart(absl::Time now);

  // Returns the outage at NOW, or nullopt while it is within the limit.
  std::optional<ServerOutage> OutageAt(absl::Time now) const;

 private:
  const absl::Duration limit_;
  absl::Time last_sign_;
  bool stream_up_ = true;  // also before the first stream is opened
  absl::Time stream_up_since_;
  std::optional<absl::Time> stream_lost_at_;
  absl::Status last_error_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SERVER_LIVENESS_H_
