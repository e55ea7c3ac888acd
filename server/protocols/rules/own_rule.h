// OwnRule gives the shards of this server the newest rule of the job. Lives on the job's control
// executor.
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_OWN_RULE_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_OWN_RULE_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "common/time/executor.h"
#include "server/core/event.h"
#include "server/protocols/state/rule_plan.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class OwnRule {
 public:
  // The arguments must outlive this object.
  OwnRule(RulePlan& plan, ServerShards& shards, Executor& control)
      : plan_(plan), shards_(shards), control_(control) {}

  // Continues an earlier process of this server: reserves memory for the restored number of
  // workers. Errors: those of ServerShards::Reserve.
  absl::Status Resume() {
    restored_ = true;
    return shards_.Reserve(plan_.rule().workers);
  }

  // Replaces the rule of this server, then calls THEN.
  void Become(const RuleEvent& event, std::function<void()> then) {
    // Fits, because the caller has reserved the memory of more workers.
    shards_.Reserve(event.rule.workers).IgnoreError();
    if (event == plan_.newest() && !restored_) return then();
    restored_ = false;
    plan_.Follow(event);
    shards_.ApplyToAll(event,
                       [&control = control_, then = std::move(then)] { control.Post(then); });
  }

 private:
  RulePlan& plan_;
  ServerShards& shards_;
  Executor& control_;
  // The state is that of an earlier process, and a shard of this server may have an older rule.
  bool restored_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_OWN_RULE_H_
