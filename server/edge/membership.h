// Membership tracks which processes have joined a job, which incarnation each worker has, and which
// leases are valid.
//
//   Assign   the worker has no process, its lease ended, or it left        a new incarnation
//            its process sent a message after the new process's Join       AlreadyExists
//            neither yet                                                   nothing: try again later
//   Adopt    the incarnation is older than the known one                   FailedPrecondition
//            otherwise                                                     OK
//
// Server 0 assigns incarnations, which count from 1; the other servers adopt them. A new process
// waits at most one lease. Callers pass the current time, which must never decrease.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_EDGE_MEMBERSHIP_H_
#define THINWIRE_SERVER_EDGE_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"

namespace thinwire {

struct Member {
  Incarnation incarnation;  // 0: never joined
  absl::Time heard;
  bool expired = false;  // the lease ran out, and no message arrived since
  bool left = false;

  bool live() const { return incarnation.value != 0 && !expired && !left; }
};

// The state of a process's lease after a message from it.
enum class LeaseState {
  kUnknown,   // the process has not joined this server, or has left
  kFenced,    // a newer process has the worker's number
  kRenewed,   // the lease was valid and is renewed
  kReturned,  // the lease had run out; the worker is live again
};

class Membership {
 public:
  using Process = std::pair<WorkerId, Incarnation>;

  Membership(uint32_t worker_count, absl::Duration lease) : lease_(lease), members_(worker_count) {}

  // REQUIRES, here and below: worker < worker_count.
  const Member& of(WorkerId worker) const { return members_[worker.value]; }

  // Assigns an incarnation to a new process whose Join arrived at ARRIVAL. Returns nullopt if it
  // must try again after the next Renew or Expire. Errors: AlreadyExists, with the worker and the
  // time since its process's last message.
  absl::StatusOr<std::optional<Incarnation>> Assign(WorkerId worker, absl::Time arrival,
                                                    absl::Time now);
  // Admits a process with the incarnation that the lead assigned; may be repeated. Errors:
  // FailedPrecondition if a newer incarnation is known, or if this one has left.
  absl::Status Adopt(WorkerId worker, Incarnation incarnation, absl::Time now);

  // Renews the lease of a process that sent a message.
  LeaseState Renew(WorkerId worker, Incarnation incarnation, absl::Time now);
  // May be repeated. Errors: FailedPrecondition if INCARNATION is not the known one.
  absl::Status Leave(WorkerId worker, Incarnation incarnation);
  // Returns the processes whose leases ran out since the last call, in the order of their workers.
  std::vector<Process> Expire(absl::Time now);

  // Returns the workers with valid leases, in rising order.
  std::vector<WorkerId> Live() const;

 private:
  void Begin(Member& member, Incarnation incarnation, absl::Time now);

  const absl::Duration lease_;
  std::vector<Member> members_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_MEMBERSHIP_H_
