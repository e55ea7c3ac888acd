// JobCondition says in one word what a job does, and names the causes if it makes no progress. The
// status pages, /status.json, the metrics and `thinwire status` show it. The state is the first row
// that applies:
//
//   diverged   a worker has left with a symptom of divergence
//   finished   no worker is live, and one has left after the last step
//   stopping   a server stops, all live workers were asked to stop, or all have left in order
//              before the last step
//   waiting    for a server: one does not answer, or waits for the lead's decision after its restart
//   starting   no worker has joined, or a shard accepts no push yet
//   waiting    for workers: none is live, or no shard has made progress for longer than usual
//   training   otherwise
//
// A server is unreachable as ServerHistory::outage() defines it. Its last figures count no more.
#ifndef THINWIRE_ADMIN_JOB_CONDITION_H_
#define THINWIRE_ADMIN_JOB_CONDITION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "admin/job_summary.h"
#include "admin/server_history.h"

namespace thinwire {

struct JobCondition {
  enum class State { kStarting, kTraining, kWaiting, kFinished, kDiverged, kStopping };
  enum class Cause {
    kNone,          // the job does not wait, or the cause is unknown
    kServer,        // a server does not answer
    kRollback,      // a restarted server waits for the lead's decision
    kNoWorker,      // no worker is live
    kSilentWorker,  // the worker that has not finished the step is silent: its lease runs out
    kSlowWorker,    // the worker that has not finished the step is alive
  };

  State state = State::kStarting;
  Cause cause = Cause::kNone;  // of kWaiting
  std::string waits_for;       // "server 1", "workers 0, 2"; "": unknown, or the job does not wait
  absl::Duration waiting;      // time without progress, with kWaiting
  std::vector<uint32_t> unreachable;  // servers, ascending
  // The workers that are missing because of a failure: their leases have ended, or they left with
  // an error. Empty if enough other workers are live, or if the job needs none.
  std::vector<uint32_t> lost;
  std::string symptom;  // with kDiverged: "worker 0: the loss of step 3 is not finite"
  std::vector<std::string> problems;  // sentences for operators, without a full stop
};

// SUMMARY: of the same servers and time.
JobCondition ConditionOf(std::span<const ServerHistory> servers, const JobSummary& summary,
                         absl::Time now);

// Return the names in /status.json and in metrics: "training", "slow_worker". All states are in
// JobStates().
const char* NameOf(JobCondition::State state);
const char* NameOf(JobCondition::Cause cause);
std::span<const JobCondition::State> JobStates();

// Returns the state in words: "training", "waiting for server 1", "diverged".
std::string StateText(const JobCondition& condition);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_JOB_CONDITION_H_
