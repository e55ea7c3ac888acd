// Membership stores the newest incarnation of each worker of a job and the state of its lease.
//
//   method   condition                                                 result
//   Assign   no process, or the old process left or has expired        a new incarnation
//            the old process sent a message after the new one's Join   AlreadyExists
//            otherwise: it is not yet known whether the old one lives  nullopt: try again later
//   Adopt    the incarnation is older than the assigned one, or left   FailedPrecondition
//            it is newer: server 0 has not announced it                NotFound
//            otherwise                                                 OK
//
// Server 0 assigns incarnations, starting at 1. It announces them to the other servers, which adopt
// only announced ones, so that no worker chooses its own incarnation. A new process waits for at
// most one lease. Callers pass the current time, which must never decrease.
//
// A later generation may not know all incarnations of the earlier ones. It assigns its own above
// them, and adopts a process of an earlier generation if it knows no newer one of the same worker.
//
// With several members (docs/model_parallel.md), a worker is several processes that join and end
// together under one incarnation. Its lease ends with the first of theirs. It has left when all of
// them have, or when one has failed.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_STATE_MEMBERSHIP_H_
#define THINWIRE_SERVER_PROTOCOLS_STATE_MEMBERSHIP_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace thinwire {

// Why a process has left.
struct Departure {
  bool finished = false;  // after the last step of the job
  bool failed = false;    // because of an error
  std::string diverged;   // the symptom, if the run has diverged
};

struct Member {
  Incarnation assigned;            // the newest incarnation that server 0 has assigned
  Incarnation incarnation;         // the newest one that joined; 0: never joined
  absl::Time heard;                // of the newest message of any process
  std::vector<absl::Time> leases;  // the ends of the leases, by member; InfiniteFuture: it has left
  bool expired = false;            // the lease ran out, and no message arrived since
  bool left = false;
  bool retired = false;              // an operator drains this process: it is told to leave
  std::optional<Step> stops_before;  // this process was asked to stop and begins no later step
  Departure departure;               // of this process, after it has left; a restart forgets it

  bool live() const { return incarnation.value != 0 && !expired && !left; }
  // REQUIRES: a process has joined.
  absl::Time lease_end() const { return *std::ranges::min_element(leases); }
};

// The state of a process's lease after a message from this process.
enum class LeaseState {
  kUnknown,   // the process has not joined this server, or has left
  kFenced,    // a newer process has the worker's number
  kRenewed,   // the lease was valid and is renewed
  kReturned,  // the lease had run out; the worker is live again
};

class Membership {
 public:
  using Process = std::pair<WorkerId, Incarnation>;
  // More processes than a worker ever has in one generation.
  static constexpr uint64_t kIncarnationsPerGeneration = 1'000'000;

  // GENERATION: the generation of this server's state. MEMBER_COUNT: the processes of each worker.
  Membership(uint32_t worker_count, absl::Duration lease, Generation generation = {1},
             uint32_t member_count = 1)
      : lease_(lease),
        member_count_(member_count),
        earlier_{(generation.value - 1) * kIncarnationsPerGeneration},
        members_(worker_count) {}

  uint32_t worker_count() const { return static_cast<uint32_t>(members_.size()); }

  uint32_t member_count() const { return member_count_; }
  // Returns InvalidArgument if the number of a worker in a request is not below worker_count(), or
  // that of its member not below member_count().
  absl::Status CheckNumber(uint32_t worker, uint32_t member = 0) const;

  // All methods with a WORKER argument REQUIRE: worker < worker_count; those with a MEMBER argument:
  // member < member_count.
  const Member& of(WorkerId worker) const { return members_[worker.value]; }

  // Assigns an incarnation to a new process whose Join arrived at ARRIVAL. Returns nullopt if the
  // caller must try again after the next Renew or Expire. Errors: AlreadyExists, with the worker
  // and the time since the last message of its old process.
  absl::StatusOr<std::optional<Incarnation>> Assign(WorkerId worker, absl::Time arrival,
                                                    absl::Time now);
  // Forgets all processes.
  void Forget();
  // Records that server 0 has assigned INCARNATION. An incarnation older than the known one changes
  // nothing.
  void Announce(WorkerId worker, Incarnation incarnation);
  // Admits a process with the incarnation that server 0 assigned. May be called repeatedly. Errors:
  // NotFound if INCARNATION was not assigned; FailedPrecondition if it is not the newest one or has
  // left.
  absl::Status Adopt(WorkerId worker, Incarnation incarnation, absl::Time now, uint32_t member = 0);

  // Sets the state of a number as an earlier process of this server knew it. A process that has not
  // left gets a new lease, and is drained as before.
  void Restore(WorkerId worker, Incarnation assigned, Incarnation incarnation, bool left,
               absl::Time now);
  // Records that restored processes may come back. Ends with the first call of Adopt, or of
  // ExpireAll.
  void AwaitReturn() { awaits_return_ = true; }
  // Returns whether restored processes may come back and none has.
  bool awaits_return() const { return awaits_return_; }
  // Ends all leases: no process comes back. Returns the processes that had valid ones.
  std::vector<Process> ExpireAll();
  // Continues the draining of a process that an earlier process of this server has begun. Other
  // processes of the worker, and one that has left, are not affected.
  void RestoreRetired(WorkerId worker, Incarnation incarnation);

  // Renews the lease of a process that sent a message.
  LeaseState Renew(WorkerId worker, Incarnation incarnation, absl::Time now, uint32_t member = 0);
  // Records that a process has left. The worker has then left, unless other members go on and the
  // process has not failed. May be called repeatedly. Does nothing for a process of an
  // earlier generation that this one does not know. Errors: FailedPrecondition if INCARNATION is not
  // the worker's newest incarnation.
  absl::Status Leave(WorkerId worker, Incarnation incarnation, Departure departure = {},
                     uint32_t member = 0);
  // Records that an operator drains the newest process of a worker. Later processes of the worker
  // are not affected. Errors: FailedPrecondition if the worker is not live.
  absl::Status Retire(WorkerId worker);
  // Undoes Retire.
  void CancelRetire(WorkerId worker) { members_[worker.value].retired = false; }
  // Returns the processes that an operator drains and that have not left, in ascending order of
  // their workers.
  std::vector<Process> Retired() const;
  // Records that a process was asked to stop before STEP. Does nothing for a process that is not the
  // worker's newest one.
  void Stop(WorkerId worker, Incarnation incarnation, Step step);
  // Returns the largest step before which a process was asked to stop, if every live process was
  // asked to; nullopt if one goes on.
  std::optional<Step> StopStep() const;
  // Extends every lease by PAUSE, during which this server was suspended: the processes were not
  // silent, the server did not hear them.
  void ExtendLeases(absl::Duration pause);
  // Returns the processes whose leases ran out since the last call, in ascending order of their
  // workers.
  std::vector<Process> Expire(absl::Time now);

  // Returns the workers with valid leases, in ascending order.
  std::vector<WorkerId> Live() const;
  // Returns the evaluator, the worker that tests the model; nullopt if no worker is live. Appoints
  // the live worker with the lowest number if there is none yet, or if it was lost or has left
  // before the last step. Two workers therefore never evaluate the same parameters.
  std::optional<WorkerId> AppointEvaluator();

 private:
  void Begin(Member& member, Incarnation incarnation, absl::Time now);

  absl::Duration lease_;
  const uint32_t member_count_;
  bool awaits_return_ = false;
  Incarnation earlier_;  // the largest incarnation that an earlier generation may have assigned
  std::vector<Member> members_;
  std::optional<WorkerId> evaluator_;
  bool evaluator_finished_ = false;  // it has left after the last step
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_STATE_MEMBERSHIP_H_
