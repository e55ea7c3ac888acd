// JobState is what a server knows of its job: the state that its protocols have in common, and that
// StoredState keeps on disk.
//
// Lives on the job's control executor.
#ifndef THINWIRE_SERVER_PROTOCOLS_STATE_JOB_STATE_H_
#define THINWIRE_SERVER_PROTOCOLS_STATE_JOB_STATE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "server/protocols/state/dealer.h"
#include "server/protocols/state/job_identity.h"
#include "server/protocols/state/job_match.h"
#include "server/protocols/state/membership.h"
#include "server/protocols/state/rule_plan.h"

namespace thinwire {

struct JobState {
  // The state of a job that has not begun. FIRST_RULE: that of the job file.
  JobState(JobIdentity own, const Rule& first_rule, ModeLimits limits, absl::Duration lease,
           uint32_t server_count, uint32_t member_count = 1)
      : identity(std::move(own)),
        membership(first_rule.max_workers, lease, identity.generation, member_count),
        match(limits.config),
        rule(first_rule, std::move(limits)),
        dealer(first_rule.workers, lease),
        admitted(server_count) {}

  JobIdentity identity;
  bool recovered = false;  // the state is that of an earlier process
  bool stopping = false;   // the job stops, or goes back to a checkpoint: it accepts nothing more
  bool begins_again = false;  // training begins again: the lead tells the other servers
  Membership membership;
  JobMatch match;
  RulePlan rule;
  Dealer dealer;  // only the lead uses it
  // The epoch with which the lead admitted each server, by server number; 0: not admitted yet.
  std::vector<Epoch> admitted;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_STATE_JOB_STATE_H_
