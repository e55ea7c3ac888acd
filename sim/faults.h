// Faults: what happens to a simulated cluster from outside, drawn from a seed.
//
//   network   streams break, pairs of a worker and a server are cut, or their calls alone, also for
//             longer than a lease, the lead loses a server, requests of the lead to change the rule
//             arrive again much later
//   servers   end and start again, with and without a loss of power, or after an operator has drained
//             them, or end for good
//   disks     torn and lost writes, failed flushes of files, full disks, a crash during any file
//             operation, also during a recovery
//   workers   end and start again, or for good; a new process wants the number of a suspended one
//   processes are suspended, also for longer than a lease
//   operator  changes the mode
#ifndef THINWIRE_SIM_FAULTS_H_
#define THINWIRE_SIM_FAULTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <set>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "server/core/testing/random_events.h"
#include "sim/cluster.h"

namespace thinwire::sim {

struct FaultOptions {
  bool kills_workers = false;
  bool abandons_workers = false;  // some killed workers never start again
  bool harms_disks = false;       // full disks and failed flushes, too
  uint32_t mode_changes = 0;      // the largest number of successful ones
  bool suspends_processes = false;
};

struct FaultCounts {
  uint64_t broken_streams = 0;
  uint64_t cuts = 0;
  uint64_t long_cuts = 0;
  uint64_t dead_servers = 0;
  uint64_t power_losses = 0;
  uint64_t drained_servers = 0;
  uint64_t lost_servers = 0;  // for good
  uint64_t gave_up = 0;       // workers that failed because a server was lost for good
  uint64_t disk_crashes = 0;
  uint64_t full_disks = 0;
  uint64_t failed_flushes = 0;
  uint64_t dead_workers = 0;
  uint64_t abandoned_workers = 0;
  uint64_t mode_changes = 0;
  uint64_t suspended_servers = 0;
  uint64_t suspended_workers = 0;
  uint64_t rivals = 0;  // processes that were started while an earlier one of the worker ran

  void Add(const FaultCounts& other);
  friend std::ostream& operator<<(std::ostream& out, const FaultCounts& counts);
};

// Not thread-safe.
class Faults {
 public:
  // CLUSTER, of a job with SPEC, must outlive this object, and SPEC too.
  Faults(Cluster& cluster, const JobSpec& spec, uint64_t seed, const FaultOptions& options);

  // Injects faults for the next TIME and ends them. Before the first checkpoint a server has no
  // state to come back with, so the faults begin later. Errors: those of a server that cannot start.
  absl::Status Inject(absl::Duration time);
  // Ends a server for good, and runs the cluster until every worker has finished or failed. Errors:
  // Internal if a worker does neither within TIME, or does not name the server.
  absl::Status LoseServer(absl::Duration time);
  // Runs the cluster until no request of the operator waits, and all shards have the same rule, the
  // one that the lead has confirmed if it is known. Returns false if TIME passes first.
  bool SettleRule(absl::Duration time);
  const FaultCounts& counts() const { return counts_; }

 private:
  absl::Status InjectOne();
  void Cut(WorkerId worker, ServerId server);
  void CutForLong(WorkerId worker, ServerId server);
  void HarmDisk(ServerId server);
  absl::Status StartIfDown(ServerId server);
  absl::Status KillServer(ServerId server);
  void KillWorker(WorkerId worker);
  void SuspendOne(ServerId server, WorkerId worker);
  void EndFaults();
  void ChangeMode();
  void TakeReply();

  Cluster& cluster_;
  const JobSpec& spec_;
  SeededRandom random_;
  std::set<ServerId> draining_;  // servers that will end soon
  const FaultOptions options_;
  FaultCounts counts_;
  // The reply to the operator's request; null: no request. It is destroyed with the job, unset.
  std::shared_ptr<std::optional<absl::Status>> reply_;
  Rule requested_;
  absl::Duration gives_up_;        // the time at which the operator no longer waits
  bool succeeded_ = false;         // the newest request
  std::optional<Rule> confirmed_;  // nullopt: not known
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_FAULTS_H_
