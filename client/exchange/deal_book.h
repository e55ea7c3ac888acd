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
#include "common/ids.h"
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
  // Adds the contents of the lead's REPLY to REQUEST. Errors: as those of Reset.
  absl::Status Add(const HeartbeatRequest& request, const HeartbeatReply& reply);

  // Blocks until all deals that begin at or before STEP are known. Returns false if TIMEOUT passes
  // first.
  bool Wait(Step step, absl::Duration timeout) const;
  // Returns all deals except the first KNOWN_COUNT ones.
  std::vector<Deal> DealsAfter(size_t known_count) const;
  // Returns whether the lead wants this worker to leave.
  bool retired() const;

 private:
  // Adds DEALS, of which the first one has the number FIRST. Ignores known deals.
  static absl::Status Append(size_t first, const google::protobuf::RepeatedPtrField<Deal>& added,
                             std::vector<Deal>& deals);
  bool Knows(Step step) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return step.value < dealt_until_ || (dealt_until_ == 0 && deals_.empty());
  }

  mutable absl::Mutex mu_;
  std::vector<Deal> deals_ ABSL_GUARDED_BY(mu_);
  uint64_t dealt_until_ ABSL_GUARDED_BY(mu_) = 0;
  bool retired_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_DEAL_BOOK_H_
