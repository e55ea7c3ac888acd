// JoinQueue admits new worker processes, at the lead. A Join waits until the number of its worker
// is free. Then the worker gets an incarnation, and the other servers learn of it. With several
// members, it waits until the Joins of all members of the worker are here; they get one incarnation.
//
//   Add -> all members -> Membership::Assign -> AdmissionLead::Announce -> ADMIT each
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
#include "server/protocols/membership/admission_lead.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

struct JoinCall {
  JoinRequest request;
  std::function<bool()> abandoned;  // returns whether the caller no longer waits
  std::function<void(absl::StatusOr<JoinReply>)> done;
  std::function<absl::Status()> may_rejoin;   // see Job::Join
  absl::Time arrival = absl::InfinitePast();  // set by JoinQueue::Add

  WorkerId worker() const { return WorkerId{request.worker()}; }
};

class JoinQueue final : public Protocol {
 public:
  using Admit = std::function<void(const JoinCall&, Incarnation)>;

  // Calls ADMIT with each admitted process; ADMIT replies to it. The other arguments must outlive
  // this object.
  JoinQueue(JobState& state, AdmissionLead& admission, const ModelSlot& model, Clock& clock,
            Admit admit)
      : state_(state),
        admission_(admission),
        model_(model),
        clock_(clock),
        admit_(std::move(admit)) {}

  // Admits or refuses the process of CALL, now or later. REQUIRES: the job has its model.
  void Add(JoinCall call);
  // Admits or refuses the waiting processes for which this is possible now. Call after a change of
  // the membership.
  void Answer();
  void Tick(absl::Time /*now*/) override { Answer(); }
  // Replies to all waiting calls with STATUS.
  void Stop(const absl::Status& status) override;

  // Returns the workers whose process is lost and whose new process waits.
  std::vector<WorkerId> Returning() const;

 private:
  // The Joins of the processes of one worker: one of each member.
  using Calls = std::vector<JoinCall>;

  // Returns whether CALLS need not wait any more.
  bool TryAnswer(const Calls& calls);
  // Answers the processes of WORKER if all its members wait.
  void AnswerMembers(WorkerId worker);
  // Announces the new process to the other servers, then admits CALLS. BEFORE: the worker before the
  // new process.
  void Announce(const Calls& calls, Incarnation incarnation, const Member& before);
  // A new process has replaced the lost process of WORKER, whose lease had EXPIRED. If it begins
  // some steps later, the examples of these steps are dealt anew.
  void DealAnew(WorkerId worker, bool expired);

  JobState& state_;
  AdmissionLead& admission_;
  const ModelSlot& model_;
  Clock& clock_;
  const Admit admit_;
  std::vector<JoinCall> waiting_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_JOIN_QUEUE_H_
