// MemberEvents passes the changes of the membership on to the shards: leases that end, and workers
// that come back.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_MEMBER_EVENTS_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_MEMBER_EVENTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/counters.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class MemberEvents final : public Protocol {
 public:
  // LEASE: of the job. The other arguments must outlive this object.
  MemberEvents(absl::Duration lease, JobState& state, ServerShards& shards, Counters& counters,
               Clock& clock)
      : lease_(lease), state_(state), shards_(shards), counters_(counters), clock_(clock) {}

  // Log that a worker has joined or left.
  void LogJoin(WorkerId worker, Incarnation incarnation);
  void LogLeave(WorkerId worker);
  // Renews the lease of a worker's process, from which a message has arrived.
  void Renew(WorkerId worker, Incarnation incarnation, uint32_t member = 0);
  // Extends all leases by the time for which this process was suspended.
  void ExcusePause(absl::Duration pause);
  // No worker can join from NOW until the next Tick: the leases do not run.
  void Suspend(absl::Time now);

  // Expires leases. A worker with several members whose lease ends has left: the others cannot go on
  // without the lost one.
  void Tick(absl::Time now) override;
  void FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) override;

 private:
  const absl::Duration lease_;
  JobState& state_;
  ServerShards& shards_;
  Counters& counters_;
  Clock& clock_;
  // Of the lines about single workers, which can join and leave at any rate.
  LogLimit lines_{256, absl::Seconds(1)};
  std::optional<absl::Time> suspended_since_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_MEMBER_EVENTS_H_
