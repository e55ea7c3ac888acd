// ServerLiveness: detects that a server has stopped responding. It is a pure state machine: callers
// pass the current time, and the limit beyond which silence is an outage.
//
//   kSilent     no message and no heartbeat for longer than the limit
//   kRefusing   heartbeats arrive, but the server has accepted no stream for longer than the limit
//
// Every message counts as a sign of life, also "still waiting for worker 3". A slow round therefore
// never causes a timeout; only silence does.
#ifndef THINWIRE_CLIENT_EXCHANGE_SERVER_LIVENESS_H_
#define THINWIRE_CLIENT_EXCHANGE_SERVER_LIVENESS_H_

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace thinwire::client {

enum class ServerState { kSilent, kRefusing };

// The reason for a server's outage, and the outage's duration.
struct ServerOutage {
  ServerState state;
  absl::Duration duration;
  absl::Status last_error;  // last error of the stream or a control call; OK if there was none
};

// Returns the index of the longest of OUTAGES, or nullopt if all servers respond.
std::optional<size_t> LongestOutage(std::span<const std::optional<ServerOutage>> outages);

// Not thread-safe.
class ServerLiveness {
 public:
  // A stream that is up for longer than STABLE ends an outage also if no message is received. The
  // server is assumed to respond at NOW.
  ServerLiveness(absl::Duration stable, absl::Time now)
      : stable_(stable), last_sign_(now), stream_up_since_(now) {}

  // The server has answered a heartbeat or another control call.
  void CallAnswered(absl::Time now);
  void CallFailed(absl::Status error);
  // A message was received from the stream, which proves that the stream works in both directions.
  void MessageReceived(absl::Time now);
  // The stream accepted a message for sending. The server may still refuse the stream.
  void MessageAccepted(absl::Time now);
  void StreamLost(absl::Time now, absl::Status error);

  // Restarts all measurements at NOW. Call this after the client's own process was suspended, so
  // that the suspension does not count as silence of the server.
  void Restart(absl::Time now);

  // Returns the time of the last message or answered call.
  absl::Time last_sign() const { return last_sign_; }
  // Returns the server's outage at NOW, or nullopt if the server has not been silent or refusing
  // for longer than LIMIT.
  std::optional<ServerOutage> OutageAt(absl::Time now, absl::Duration limit) const;

 private:
  const absl::Duration stable_;
  absl::Time last_sign_;
  bool stream_up_ = true;  // true also before the first stream is opened
  absl::Time stream_up_since_;
  std::optional<absl::Time> stream_lost_at_;
  absl::Status last_error_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SERVER_LIVENESS_H_
