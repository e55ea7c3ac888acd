// Scaler changes the consistency rule of a running job: at the request of an operator the number of
// workers (`thinwire scale`) and the mode (`thinwire mode`), at that of WaitTuner a number of the
// mode.
//
//   more workers    the servers apply the new rule, then workers with the new numbers may join
//   fewer workers   workers with higher numbers are told to leave; when they have left or their
//                   leases have expired, the servers apply the new rule
//   another mode    the new rule begins at a step that no worker begins soon, so that all shards
//                   change at the same step
//
// The lead, server 0, passes the rule on to the other servers before its own shards get it. It
// numbers its changes, so that another server refuses a request that arrives after a newer one.
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_SCALER_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_SCALER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "common/text/problems.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "server/core/event.h"
#include "server/protocols/peers.h"

namespace thinwire {

class Scaler {
 public:
  using Done = std::function<void(absl::StatusOr<ScaleReply>)>;
  using SetModeDone = std::function<void(absl::StatusOr<SetModeReply>)>;
  // This server's actions.
  struct Server {
    // Returns a request of this server, the lead, without a rule: with its job and run.
    std::function<SetModeRequest()> request;
    // Reserves memory for the connections of this number of workers, instead of the earlier number.
    // Errors: InvalidArgument if they do not fit.
    std::function<absl::Status(uint32_t workers)> reserve;
    // Returns OK if the job may have the mode of RULE. Errors: InvalidArgument.
    std::function<absl::Status(const Rule& rule)> check_mode;
    // Returns the settings of the job with which training may diverge under this rule.
    std::function<Problems(const Consistency& consistency)> warnings;
    // Returns a step that no worker begins soon. Errors: FailedPrecondition if this server has no
    // shard.
    std::function<absl::StatusOr<Step>()> step_ahead;
    // Stores the request with which the other servers have got the rule, before this server, the
    // lead, follows it. Errors: those of the file system.
    std::function<absl::Status(const SetModeRequest& request)> store;
    // Submits a rule to the shards, then calls THEN on any thread when all of them have it.
    std::function<void(const RuleEvent& event, std::function<void()> then)> apply;
    // Stores reduction(), then calls THEN, on any thread, or within the call with the error of the
    // file system.
    std::function<void(const std::function<void(const absl::Status&)>& then)> record;
  };

  // RULE: the rule of the job file. CHANGE: at the lead, its changes get the numbers above this one;
  // 0 at another server. PEERS, which may be null except at the lead of several servers, and
  // CONTROL, the control thread, must outlive this object.
  Scaler(const Rule& rule, uint32_t server_count, uint64_t change, Peers* peers, Executor& control,
         Server server);

  // Sets the rule to that of an earlier process of this server.
  void Restore(const RuleEvent& event);
  // At the lead, sets the rule to that of a request that an earlier process has stored. If this is
  // another rule than the restored one, it begins at LEAST or later. Errors: InvalidArgument.
  absl::Status Restore(const SetModeRequest& request, Step least);
  // Continues a reduction to WORKERS that an earlier process has begun; 0: there is none.
  void RestoreReduction(uint32_t workers);
  // Continues an earlier process of this server: reserves memory for the restored number of workers.
  // The lead then passes its rule on again, also the first one, because the earlier process may have
  // ended before all servers and shards had it, or while other servers had a later one. Errors:
  // those of Server::reserve.
  absl::Status Resume();

  // Returns the newest rule, which the shards of this server follow, or will follow from a later
  // step on.
  const Rule& rule() const { return newest_.rule; }
  // Returns the number of workers that the operator wants. Workers with higher numbers must leave
  // and cannot join.
  uint32_t target() const { return target_; }
  // Returns the number of workers of a reduction that is not complete; 0: there is none.
  uint32_t reduction() const { return target_ < rule().workers ? target_ : 0; }

  // Changes the number of workers, at the lead. Errors: InvalidArgument for a number that the job
  // does not allow or that does not fit into a server's memory; Unavailable if another server
  // cannot be reached or an earlier change is not complete.
  void Scale(uint32_t workers, const Done& done);
  // Changes the mode, at the lead. The number of workers stays. Errors: InvalidArgument for a mode
  // that the job does not allow; FailedPrecondition if this server has no shard, or for a mode with
  // new warnings unless the request has `force`; Unavailable as for Scale.
  void SetMode(const SetModeRequest& request, const SetModeDone& done);
  // Replaces rule FROM by rule TO, at the lead. Both have the same mode and the same workers.
  // REASON is for the log. Does nothing if FROM is not the newest rule any more, or while another
  // change is not complete.
  void Adjust(const Rule& from, const Rule& to, const std::string& reason);
  // Applies the rule that the lead of this run passes on. Errors: as those of Scale and SetMode;
  // FailedPrecondition if this server has received a newer change.
  void Follow(const SetModeRequest& request, const SetModeDone& done);
  // Completes a reduction of the number of workers if MAY_SHRINK: no live worker must leave any
  // more. Passes the newest rule on if another server may have another one. Only the lead calls
  // Tick.
  void Tick(bool may_shrink);
  // Passes the newest rule on again under the same number, for servers that were started again and
  // have forgotten it. Only the lead calls Remind.
  void Remind();

 private:
  // Returns the rule for another number of workers. The number of backup workers stays.
  absl::StatusOr<Rule> RuleFor(uint32_t workers) const;
  // Returns the rule of a request. Errors: InvalidArgument.
  absl::StatusOr<Rule> RuleFor(const Consistency& consistency) const;
  // Returns the warnings under RULE that the newest rule does not have.
  std::vector<std::string> NewWarnings(const Rule& rule) const;
  // Returns the request that passes EVENT on under the number of the newest change.
  SetModeRequest RequestFor(const RuleEvent& event) const;
  // Passes EVENT on. If a server refuses it, all servers get the earlier rule again.
  void Try(const RuleEvent& event, std::function<void(const absl::Status&)> done);
  // Replaces the rule of this server, then calls THEN.
  void Become(const RuleEvent& event, std::function<void()> then);
  // Passes the rule to the other servers and then to the own shards.
  void Change(const RuleEvent& event, std::function<void(const absl::Status&)> done);
  absl::Status CheckIdle() const;

  const Rule first_;
  const uint32_t server_count_;
  Peers* const peers_;
  Executor& control_;
  const Server server_;
  uint64_t change_;  // the number of the newest change that this server has sent or received
  RuleEvent newest_;
  uint32_t target_;
  absl::Status last_error_;  // of the last reduction
  LogLimit change_lines_{10, absl::Seconds(10)};
  bool changing_ = false;  // other servers have not replied yet
  bool passed_on_ = true;  // at the lead: no other server has a rule other than newest_
  // The state is that of an earlier process, and a shard of this server may have an older rule.
  bool restored_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_SCALER_H_
