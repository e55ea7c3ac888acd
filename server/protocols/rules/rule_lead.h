// RuleLead changes the consistency rule of a running job, at the lead: at the request of an
// operator the number of workers (`thinwire scale`) and the mode (`thinwire mode`), at that of
// WaitLead a number of the mode.
//
//   more workers    the servers apply the new rule, then workers with the new numbers may join
//   fewer workers   workers with higher numbers are told to leave; when they have left or their
//                   leases have expired, the servers apply the new rule
//   another mode    the new rule begins at a step that no worker begins soon, so that all shards
//                   change at the same step
//
// The lead passes the rule on to the other servers before its own shards get it. It numbers its
// changes, so that another server refuses a request that arrives after a newer one.
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_RULE_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_RULE_LEAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "server/core/event.h"
#include "server/protocols/decision_store.h"
#include "server/protocols/peers.h"
#include "server/protocols/protocol.h"
#include "server/protocols/rules/own_rule.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class RuleLead final : public Protocol {
 public:
  using ScaleDone = std::function<void(absl::StatusOr<ScaleReply>)>;
  using SetModeDone = std::function<void(absl::StatusOr<SetModeReply>)>;

  // SERVER_COUNT: of the job. PEERS may be null in a job with one server. The other arguments must
  // outlive this object.
  RuleLead(JobState& state, uint32_t server_count, Peers* peers, ServerShards& shards,
           DecisionStore& store, Clock& clock, Executor& control);

  // The lead passes its rule on again, also the first one, because the earlier process may have
  // ended before all servers and shards had it, or while other servers had a later one.
  absl::Status Begin() override;

  // Changes the number of workers. Errors: InvalidArgument for a number that the job does not allow
  // or that does not fit into a server's memory; Unavailable if another server cannot be reached or
  // an earlier change is not complete.
  void Scale(uint32_t workers, const ScaleDone& done);
  // Changes the mode. The number of workers stays. Errors: InvalidArgument for a mode that the job
  // does not allow; FailedPrecondition if this server has no shard, or for a mode with new warnings
  // unless the request has `force`; Unavailable as for Scale.
  void SetMode(const SetModeRequest& request, const SetModeDone& done);
  // Replaces rule FROM by rule TO. Both have the same mode and the same workers. REASON is for the
  // log. Does nothing if FROM is not the newest rule any more, or while another change is not
  // complete.
  void Adjust(const Rule& from, const Rule& to, const std::string& reason);

  // Calls Complete, and Remind once a second.
  void Tick(absl::Time now) override;
  // Completes a reduction of the number of workers if MAY_SHRINK: no live worker must leave any
  // more. Passes the newest rule on if another server may have another one.
  void Complete(bool may_shrink);
  // Passes the newest rule on again under the same number, for servers that were started again and
  // have forgotten it.
  void Remind();

 private:
  // Returns a step that no worker begins soon. Errors: FailedPrecondition if this server has no
  // shard.
  absl::StatusOr<Step> StepAhead();
  // Returns the request that passes EVENT on under the number of the newest change.
  SetModeRequest RequestFor(const RuleEvent& event) const;
  // Passes EVENT on. If a server refuses it, all servers get the earlier rule again.
  void Try(const RuleEvent& event, std::function<void(const absl::Status&)> done);
  // Passes the rule to the other servers and then to the own shards.
  void Change(const RuleEvent& event, std::function<void(const absl::Status&)> done);
  absl::Status CheckIdle() const;

  JobState& state_;
  RulePlan& plan_;
  const uint32_t server_count_;
  Peers* const peers_;
  ServerShards& shards_;
  DecisionStore& store_;
  Clock& clock_;
  Executor& control_;
  OwnRule own_;
  uint64_t change_;  // the number of the newest change that this server has sent
  absl::Time last_reminder_;
  absl::Status last_error_;  // of the last reduction
  LogLimit change_lines_{10, absl::Seconds(10)};
  bool changing_ = false;  // other servers have not replied yet
  bool passed_on_ = true;  // no other server has a rule other than the newest one
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_RULE_LEAD_H_
