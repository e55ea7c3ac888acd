// RuleFollower applies the rules that the lead passes on (rule_lead.h), at another server.
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_RULE_FOLLOWER_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_RULE_FOLLOWER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/protocol.h"
#include "server/protocols/rules/own_rule.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class RuleFollower final : public Protocol {
 public:
  // The arguments must outlive this object.
  RuleFollower(JobState& state, ServerShards& shards, Executor& control)
      : state_(state), shards_(shards), own_(state.rule, shards, control) {}

  absl::Status Begin() override { return state_.recovered ? own_.Resume() : absl::OkStatus(); }

  // Applies the rule of REQUEST, then calls DONE. Errors: InvalidArgument for a rule that the job
  // does not allow or that does not fit into the memory; FailedPrecondition if this server has
  // received a newer change.
  void SetMode(const SetModeRequest& request,
               const std::function<void(absl::StatusOr<SetModeReply>)>& done);

 private:
  JobState& state_;
  ServerShards& shards_;
  OwnRule own_;
  uint64_t change_ = 0;  // the number of the newest change that this server has received
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_RULE_FOLLOWER_H_
