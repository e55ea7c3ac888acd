// NumberLead gives worker numbers to processes that were started without one, at the lead. A number
// is free if no live process has it, and if it is not reserved for another process. Of the free
// numbers, a process gets the first of these:
//
//   a number whose state the process has kept on its disk
//   the lowest number that no process has had
//   the lowest one
//
// The number stays reserved until its process has joined, at most for `start_timeout`. Reservations
// are not stored: if two processes have the same number after a restart of the lead, the second one
// is refused at its Join.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_NUMBER_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_NUMBER_LEAD_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"

namespace thinwire {

class NumberLead final : public Protocol {
 public:
  // STATE must outlive this object.
  NumberLead(const JobState& state, absl::Duration start_timeout)
      : state_(state), start_timeout_(start_timeout) {}

  // Reserves a number for the caller. Errors: AlreadyExists if no number is free;
  // FailedPrecondition in a job with members, whose processes must know to which worker they belong.
  absl::StatusOr<ClaimNumberReply> Claim(const ClaimNumberRequest& request, absl::Time now);

  void Tick(absl::Time now) override;
  // The process of WORKER has joined.
  void FillIn(WorkerId worker, JoinReply& reply) override;

 private:
  bool IsFree(uint32_t number) const;

  const JobState& state_;
  const absl::Duration start_timeout_;
  std::map<uint32_t, absl::Time> reserved_;  // number -> the end of its reservation
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_NUMBER_LEAD_H_
