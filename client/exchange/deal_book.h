// DealBook: the deals (Deal in proto/control.proto) that the lead has announced to this worker, and
// the step below which no further deal begins. A worker begins a step only below this step, so all
// workers deal the examples of every step alike.
//
// A lead that states neither deals nor such a step deals nothing: Wait then returns at once.
#ifndef THINWIRE_CLIENT_EXCHANGE_DEAL_BOOK_H_
#define THINWIRE_CLIENT_EXCHANGE_DEAL_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Thread-safe.
class DealBook {
 public:
  // Replaces everything by the contents of the lead's reply to Join. Errors: InvalidArgument if a
  // deal is not valid; the book is then unchanged.
  absl::Status Reset(const JoinReply& reply);
  // Adds the contents of a reply to Join of a lead that was started again with its state. Errors:
  // as those of Reset.
  absl::Status Add(const JoinReply& reply);
  // States the known deals in a heartbeat to the lead.
  void FillIn(HeartbeatRequest& request) const;
  // Adds the contents of the lead's REPLY. Errors: as those of Reset.
  absl::Status Add(const HeartbeatReply& reply);

  // Blocks until all deals that begin at or before STEP are known. Returns false if TIMEOUT passes or
  // EndWaits is called first.
  bool Wait(Step step, absl::Duration timeout) const;
  // The servers go back to an earlier step: Wait returns at once, until Reset.
  void EndWaits();
  // Returns the deals with numbers above KNOWN.
  std::vector<Deal> DealsAfter(size_t known) const;
  // States, in later heartbeats to the lead, that EPOCH is the epoch of this worker's current step
  // and begins at BEGIN, so that the lead can drop earlier deals.
  void BeginEpoch(uint64_t epoch, Step begin);
  // Returns whether the lead wants this worker to leave.
  bool retired() const;

 private:
  // Adds ADDED, whose numbers ascend, to DEALS. Ignores known deals. A deal that begins an epoch
  // replaces earlier ones.
  static absl::Status Append(const google::protobuf::RepeatedPtrField<Deal>& added,
                             std::vector<Deal>& deals);
  bool Knows(Step step) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return step.value < dealt_until_ || (dealt_until_ == 0 && deals_.empty());
  }

  mutable absl::Mutex mu_;
  std::vector<Deal> deals_ ABSL_GUARDED_BY(mu_);
  uint64_t dealt_until_ ABSL_GUARDED_BY(mu_) = 0;
  bool waits_end_ ABSL_GUARDED_BY(mu_) = false;
  bool retired_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;  // 0: not stated
  Step epoch_begin_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_DEAL_BOOK_H_
