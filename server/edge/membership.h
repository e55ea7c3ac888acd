// Membership: who has joined a job, which process has each worker's number, and whose lease holds.
//
//   Ask      the number is free, its lease is over, or it left    the next incarnation
//            its process was heard after the newcomer asked       AlreadyExists
//            neither yet                                          ask again later
//   Adopt    the incarnation is older than the known one          FailedPrecondition
//            else                                                 welcome
//
// Server 0 is asked for incarnations, which rise from 1; the others adopt what it gave.
// So a newcomer waits at most one lease. Time is told by the caller and
// never falls.
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
  bool expired = false;  // its lease ran out, and nothing was heard since
  bool left = false;

  bool holds() const { return incarnation.value != 0 && !expired && !left; }
};

// What a sign of life turned out to be.
enum class Sign {
  kUnknown,   // of a process that has not joined here, or has left
  kFenced,    // a newer process has the number
  kHeld,      // its lease goes on
  kReturned,  // its lease had run out: it is live again
};

class Membership {
 public:
  using Process = std::pair<WorkerId, Incarnation>;

  Membership(uint32_t worker_count, absl::Duration lease) : lease_(lease), members_(worker_count) {}

  // REQUIRES, here and below: worker < worker_count.
  const Member& of(WorkerId worker) const { return members_[worker.value]; }

  // A newcomer that asked at ASKED wants the number. Nothing: it has to ask again, after Heard or
  // Expire. Errors: AlreadyExists naming the worker and how long ago its process was heard.
  absl::StatusOr<std::optional<Incarnation>> Ask(WorkerId worker, absl::Time asked, absl::Time now);
  // A process comes with the incarnation the lead gave it. A repeated one is welcome again. Errors:
  // FailedPrecondition if a newer one is known, or this one has left.
  absl::Status Adopt(WorkerId worker, Incarnation incarnation, absl::Time now);

  Sign Heard(WorkerId worker, Incarnation incarnation, absl::Time now);
  // May come twice. Errors: FailedPrecondition if INCARNATION is not the known one.
  absl::Status Leave(WorkerId worker, Incarnation incarnation);
  // Whose lease ran out since the last call, rising.
  std::vector<Process> Expire(absl::Time now);

  // Whose leases hold, rising.
  std::vector<WorkerId> Live() const;

 private:
  void Begin(Member& member, Incarnation incarnation, absl::Time now);

  const absl::Duration lease_;
  std::vector<Member> members_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_MEMBERSHIP_H_
