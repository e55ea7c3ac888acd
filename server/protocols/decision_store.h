// DecisionStore keeps the decisions of a lead beyond its process. StoredState keeps them on disk.
//
// Lives on the job's control executor.
#ifndef THINWIRE_SERVER_PROTOCOLS_DECISION_STORE_H_
#define THINWIRE_SERVER_PROTOCOLS_DECISION_STORE_H_

#include <functional>

#include "absl/status/status.h"
#include "proto/control.pb.h"

namespace thinwire {

class DecisionStore {
 public:
  // Gets OK when the decision is durable, on any thread, or the error of the file system, within
  // the call.
  using Recorded = std::function<void(const absl::Status&)>;

  virtual ~DecisionStore() = default;

  // Records the decisions about servers and workers in JobState.
  virtual void RecordLead(const Recorded& then) = 0;
  // Records a deal, which the Dealer has proposed.
  virtual void RecordDeal(const Deal& deal, const Recorded& then) = 0;
  // Stores the REQUEST with which the lead passes the newest rule on, before it follows the rule
  // itself. Errors: those of the file system; either rule may then be on the disk.
  virtual absl::Status StoreRule(const SetModeRequest& request) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_DECISION_STORE_H_
