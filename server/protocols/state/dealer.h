// Dealer decides, at the lead, how the examples are dealt among the workers: it proposes a new deal
// (Deal in proto/control.proto) when the members of the job change. The deal begins at a step that
// no worker has begun.
//
//   step    0 .......... largest next .......... dealt_until
//           begun        may begin               no worker begins these steps yet
//                        (at least 8 steps, or   a new deal begins here
//                        the steps of 3 seconds)
//
// Each reply to a worker states `dealt_until`: no further deal begins below it, so the worker may
// begin the steps below it. A new deal therefore begins at the largest dealt_until that any worker
// was told. After a restart of the lead this number is unknown. The Dealer then proposes nothing
// until every live worker has stated what it was told, or one lease has passed. Only if the workers
// have gone back with the lead, what they were told before does not count.
//
// A deal also states how many batches each worker takes in a step. The next deal announces a new
// number. There are two ways to decide it:
//
//   Share         each worker has a number of its own
//   KeepBatches   the workers together have one, which Grow raises: a deal of more members gives each
//                 of them fewer batches. 8 batches of 3 members are 3, 3 and 2
//
// Deals are numbered from 1. When no worker needs the deals before an epoch any more, one deal that
// begins the epoch replaces them, so that their number stays small.
//
// Members often change together: the workers of a run end at nearly the same time. A deal is
// therefore proposed when the members have not changed for a second.
//
// Callers pass the current time, which must never decrease. Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_STATE_DEALER_H_
#define THINWIRE_SERVER_PROTOCOLS_STATE_DEALER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/deal_check.h"

namespace thinwire {

class Dealer {
 public:
  static constexpr uint64_t kLeastSteps = 8;
  static constexpr absl::Duration kAhead = absl::Seconds(3);
  static constexpr absl::Duration kSettleTime = absl::Seconds(1);

  // The first deal has the members 0 to WORKERS - 1.
  Dealer(uint32_t workers, absl::Duration lease);

  // Replaces all deals by those of a checkpoint.
  void Reset(std::vector<Deal> deals);
  // Adds a deal of the event log, unless the deals of the checkpoint include it.
  void Replay(const Deal& deal);
  // Ends the restoration of an earlier process's state. WENT_BACK: the workers forget what they were
  // told, because they join again after a rollback.
  void Resume(absl::Time now, bool went_back = false);

  // Returns the deals, for a checkpoint. The last one may wait for Commit.
  std::vector<Deal> deals() const;
  // Returns the members of the last deal, ascending.
  std::vector<WorkerId> members() const;
  // Return the number of members of the deal in force at STEP, and the batches that they take
  // together in a step. REQUIRES for BatchesAt: KeepBatches was called.
  uint32_t MemberCountAt(Step step) const;
  uint64_t BatchesAt(Step step) const;
  // Returns the batches of a step of the last deal, or of the next one after a call of Grow.
  // REQUIRES: KeepBatches was called.
  uint64_t batches() const;

  // Records that some worker may begin the steps up to and including LARGEST_NEXT.
  void Advance(Step largest_next, absl::Time now);
  // No worker may begin LIMIT or a later step; nullopt: there is no limit.
  void set_limit(std::optional<Step> limit) { limit_ = limit; }
  // Returns a step that no worker reaches in about kAhead, at least kLeastSteps after the largest
  // step so far.
  Step StepAhead() const;
  // Records that the lead has told WORKER this dealt_until.
  void Heard(WorkerId worker, uint64_t dealt_until);

  // Records that a new process has replaced the lost process of WORKER, which had not finished step
  // NEXT, and begins after that step. If WORKER is a member of the last deal, it departs, and
  // becomes a member again by another deal: the examples of the steps between are dealt anew.
  void Replace(WorkerId worker, Step next) { replaced_.emplace(worker, next); }

  // Records that EPOCH of the data set begins at BEGIN. If the workers in LIVE and the members of the
  // last deal have finished all earlier steps, the deals before BEGIN are replaced by one. LIMIT: the
  // workers never go back to an earlier step; BEGIN may not be above it. NEXT: as in Propose.
  void Drop(uint64_t epoch, Step begin, Step limit, const std::vector<WorkerId>& live,
            const std::function<Step(WorkerId)>& next);

  // The members of a deal take the batches of the deal before it, each at least one and at most MOST.
  // PER_MEMBER is the number of batches of a member where the deals do not state it.
  void KeepBatches(uint32_t per_member, uint32_t most);
  // The next deal has this number of batches in a step, the sum over its members. REQUIRES:
  // KeepBatches was called.
  void Grow(uint64_t batches) { grown_batches_ = batches; }

  // From the next deal on, a worker takes the number of batches in BATCHES in a step, or MOST if it
  // is not named.
  void Share(uint32_t most, std::map<WorkerId, uint32_t> batches);
  // Returns the number of batches of WORKER in the last deal; 0 if it states none.
  uint32_t BatchesOf(WorkerId worker) const;

  // Returns the next deal if the members or their batches have changed since the last deal, the
  // members have been the same in all calls of the last kSettleTime, and a deal may be announced.
  // LIVE, ascending: the live workers. RETURNING: workers whose process is lost and whose new
  // process is not admitted yet; they stay members. NEXT returns the first step that a worker has
  // not finished. The deal is announced after Commit, which follows when the deal is durable; until
  // then no other deal is proposed. Withdraw takes the deal back.
  std::optional<Deal> Propose(const std::vector<WorkerId>& live,
                              const std::vector<WorkerId>& returning,
                              const std::function<Step(WorkerId)>& next, absl::Time now);
  void Commit();
  void Withdraw() { proposed_.reset(); }

  // Add the deals and the current dealt_until to a reply. A heartbeat's sender knows the deals
  // up to number KNOWN.
  void FillIn(JoinReply& reply);
  void FillIn(uint32_t known, HeartbeatReply& reply);

 private:
  struct Progress {
    absl::Time time;
    uint64_t step = 0;
  };

  // Returns the announced deal in force at STEP; null: the first one, which is not announced.
  const Deal* At(Step step) const;
  // Raises dealt_until_ as far as the progress allows.
  void Promise();
  // Returns the batches of a step of DEAL; null: of the first deal.
  uint64_t BatchesOf(const Deal* deal) const;
  // Returns whether a deal has the batches of the one before it. The deals of an earlier process
  // show it, too.
  bool keeps_batches() const {
    return per_member_ > 0 || (!deals_.empty() && deals_.back().accumulate() > 0);
  }
  // Set the batches of DEAL, whose members are set.
  void SetBatches(Deal& deal) const;
  void SplitBatches(uint64_t batches, Deal& deal) const;
  // Returns whether DEAL, with the members of the last deal, changes their batches.
  bool ChangesBatches(const Deal& deal) const;
  // Returns the members of a deal that begins now, ascending.
  std::vector<WorkerId> NewMembers(std::vector<WorkerId> live,
                                   const std::vector<WorkerId>& returning);
  bool AwaitsStatements(const std::vector<WorkerId>& new_members, absl::Time now);

  const uint32_t workers_;
  const absl::Duration lease_;
  std::vector<Deal> deals_;
  std::map<WorkerId, Step> replaced_;  // members of the last deal and their lost processes' steps
  std::vector<WorkerId> new_members_;  // in the last call of Propose
  absl::Time same_since_;              // the time of the first call with new_members_
  uint32_t per_member_ = 0;            // the arguments of the last call of KeepBatches; 0: none
  uint32_t most_per_member_ = kMostAccumulated;
  uint64_t grown_batches_ = 0;  // the argument of a call of Grow that no deal has; 0: none
  uint32_t most_batches_ = 0;   // the arguments of the last call of Share; 0: none
  std::map<WorkerId, uint32_t> batches_;
  std::optional<Deal> proposed_;  // waits for Commit
  std::optional<Step> limit_;
  uint64_t dealt_until_ = 0;            // the largest one that a worker was told
  std::deque<Progress> progress_;       // of about the last kAhead, oldest first
  std::optional<absl::Time> known_at_;  // after a restart: the end of the wait for statements
  std::set<WorkerId> stated_;           // workers that have stated their dealt_until since
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_STATE_DEALER_H_
