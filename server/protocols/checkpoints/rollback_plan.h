// PlanRollback decides, at the lead, how the servers of a job with durability: checkpoint go on
// after one of them was started again (docs/recovery.md). The first matching row applies.
//
//   condition                                       result
//   a server does not answer                        wait
//   a server belongs to another run or to none      the job ends, if a server awaits a rollback
//   a server has a higher generation than the lead  the job ends
//   servers have a lower generation than the lead,  they go back to the lead's newest step
//   which is not settled
//   a server awaits a rollback                      the lead goes back to the newest step of which
//                                                   every server has a checkpoint, under the next
//                                                   generation
//   the same, and there is no such step             wait while a server writes a checkpoint, which
//                                                   may be its first; then the job ends
//   otherwise                                       nothing to do
//
// The lead thus goes back first. The other servers then have a lower generation and follow it, and
// the lead is settled. A server with a lower generation than a settled lead was started again after
// a return to a snapshot in memory, whose generation is on the lead's disk only; the lead has gone on.
//
// A pure function.
#ifndef THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_ROLLBACK_PLAN_H_
#define THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_ROLLBACK_PLAN_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/durable/retention.h"

namespace thinwire {

// The state of a server that answers the lead.
struct ServerCheckpoints {
  RunId run;  // 0: the server belongs to no run
  Generation generation;
  bool awaits_rollback = false;
  std::vector<Step> steps;  // of its checkpoints, ascending
  Step frontier;            // the largest of its shards; 0: it has no shard
  bool writing = false;     // a checkpoint is not complete yet
  // Its checkpoints after a test, the best test first. Only the lead knows its own.
  std::vector<TestedCheckpoint> tested;
};

// The SERVERS go back to their checkpoints of STEP under GENERATION.
struct RollbackOrder {
  std::vector<ServerId> servers;
  Generation generation;
  Step step;

  bool operator==(const RollbackOrder&) const = default;
};

// Returns the steps of which every server has a checkpoint, ascending, or no step if a server does
// not answer. REQUIRES: SERVERS is not empty.
std::vector<Step> CommonSteps(const std::vector<std::optional<ServerCheckpoints>>& servers);
// Returns the last of CommonSteps, or nullopt if there is none.
std::optional<Step> NewestCommonStep(const std::vector<std::optional<ServerCheckpoints>>& servers);

// Returns the next order, or nullopt if there is none now. SERVERS is indexed by server number;
// nullopt: no answer. SETTLED: see CheckpointLead. Errors: FailedPrecondition if the job cannot go on;
// the message names the servers.
absl::StatusOr<std::optional<RollbackOrder>> PlanRollback(
    const std::vector<std::optional<ServerCheckpoints>>& servers, bool settled);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_ROLLBACK_PLAN_H_
