// Hearing: how long each server has been silent, or has not held a stream. Time is handed in, so
// this is a pure state machine.
//
//   silent    no frame and no heartbeat for longer than the limit
//   refusing  heard, but its stream was lost so long ago and never held since
//
// A server that says "still waiting for w3" is heard: deadlines measure silence, not duration.
#ifndef THINWIRE_CLIENT_HEARING_H_
#define THINWIRE_CLIENT_HEARING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/ids.h"

namespace thinwire::client {

// Not thread-safe.
class Hearing {
 public:
  struct Loss {
    ServerId server;
    absl::Duration since;
    bool refusing = false;
    absl::Status last_error;  // of the stream or the heartbeat; OK if it never said one
  };

  // All were heard NOW.
  Hearing(absl::Duration limit, uint32_t server_count, absl::Time now);

  void Heard(ServerId server, absl::Time now);
  // A heartbeat failed.
  void Failed(ServerId server, absl::Status error);
  // The stream brought a frame, which proves that both sides are at work.
  void StreamSpoke(ServerId server, absl::Time now);
  // The stream took a message: it is held, but may be lost again at once.
  void StreamHeld(ServerId server, absl::Time now);
  void StreamLost(ServerId server, absl::Time now, absl::Status error);

  // This process itself slept: whatever was missed was not the servers' silence.
  void Forgive(absl::Time now);

  // The server that has been lost for longest, if any was for longer than the limit.
  std::optional<Loss> Judge(absl::Time now) const;

 private:
  struct Ear {
    absl::Time heard;
    bool held = true;  // the stream; also while none was asked for
    absl::Time held_since;
    std::optional<absl::Time> lost_since;
    absl::Status last_error;
  };

  const absl::Duration limit_;
  std::vector<Ear> ears_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_HEARING_H_
