// JoinQueue admits new worker processes, at the lead. A Join waits until the number of its worker
// is free. Then the worker gets an incarnation, and the other servers learn of it.
//
//   Add -> Membership::Assign -> Admission::Announce -> ADMIT
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_JOIN_QUEUE_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_JOIN_QUEUE_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "proto/control.pb.h"
#include "server/protocols/deals/deal_lead.h"
#include "server/protocols/membership/admission.h"
#include "server/protocols/membership/membership.h"

namespace thinwire {

struct JoinCall {
  JoinRequest request;
  std::function<bool()> abandoned;  // returns whether the caller no longer waits
  std::function<void(absl::StatusOr<JoinReply>)> done;
  std::function<absl::Status()> may_rejoin;   // see Job::Join
  absl::Time arrival = absl::InfinitePast();  // set by JoinQueue::Add

  WorkerId worker() const { return WorkerId{request.worker()}; }
};

class JoinQueue {
 public:
  using Admit = std::function<void(const JoinCall&, Incarnation)>;

  // Calls ADMIT with each admitted process; ADMIT replies to it. MEMBERSHIP, ADMISSION, DEALS and
  // CLOCK must outlive this object.
  JoinQueue(Membership& membership, Admission& admission, DealLead& deals, Clock& clock,
            Admit admit)
      : membership_(membership),
        admission_(admission),
        deals_(deals),
        clock_(clock),
        admit_(std::move(admit)) {}

  // Admits or refuses the process of CALL, now or later. REQUIRES: the job has its model.
  void Add(JoinCall call);
  // Admits or refuses the waiting processes for which this is possible now. Call after a change of
  // the membership.
  void Answer();
  // Replies to all waiting calls with STATUS.
  void Cancel(const absl::Status& status);

  // Returns the workers whose process is lost and whose new process waits.
  std::vector<WorkerId> Returning() const;

 private:
  // Returns whether CALL need not wait any more.
  bool TryAnswer(const JoinCall& call);
  // Announces the new process to the other servers, then admits it.
  void Announce(const JoinCall& call, Incarnation incarnation);

  Membership& membership_;
  Admission& admission_;
  DealLead& deals_;
  Clock& clock_;
  const Admit admit_;
  std::vector<JoinCall> waiting_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_JOIN_QUEUE_H_
