// Cluster: a whole job in one thread and in virtual time: the real jobs of its servers on simulated
// disks, the real client cores of its workers, and a network between them (network.h).
//
//   Cluster cluster(spec, task);
//   cluster.StartAll();
//   cluster.RunFor(absl::Seconds(3));
//   cluster.KillServer(ServerId{1}, /*power_loss=*/false);
//   cluster.StartServer(ServerId{1});
//   EXPECT_TRUE(cluster.RunUntilFinished(absl::Minutes(10)));
//
//   EXPECT_EQ(cluster.ledger().Close(), "");
//
// The same calls give the same run, event by event.
#ifndef THINWIRE_SIM_CLUSTER_H_
#define THINWIRE_SIM_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/virtual_time.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "sim/cluster_ledger.h"
#include "sim/cluster_observer.h"
#include "sim/mutant.h"
#include "sim/network.h"
#include "sim/worker.h"

namespace thinwire::sim {

struct ClusterOptions {
  ClusterLinks links;
  FrameCosts costs;
  // In place of the ledger; must outlive the cluster. Null: a ledger.
  ClusterObserver* observer = nullptr;
  uint64_t seed = 1;      // of the disks
  std::string state_dir;  // where workers save their residuals, on the real disk; empty: nowhere
  Mutant mutant = Mutant::kNone;
  std::ostream* trace = nullptr;  // receives one line per event, which begins with milliseconds
};

// Not thread-safe.
class Cluster {
 public:
  // REQUIRES: SPEC has no problem (JobSpec::Validate).
  Cluster(JobSpec spec, VirtualTask task, ClusterOptions options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Starts all servers and workers.
  void StartAll();
  // Starts a process of SERVER with the files of the last one. Errors: those of MakeJob.
  // REQUIRES: it has no process.
  absl::Status StartServer(ServerId server);
  // Ends the process of SERVER, if it has one. POWER_LOSS: its disk keeps only what was flushed.
  void KillServer(ServerId server, bool power_loss);
  // Drains the process of SERVER, if it has one: it ends in order.
  void DrainServer(ServerId server);
  // Starts a process of WORKER. If the worker's last process runs, the new one takes its number when
  // its lease has ended; if the last one is alive, the new one ends, and the last one goes on.
  void StartWorker(WorkerId worker);
  // Ends the newest process of WORKER, if it has one.
  void KillWorker(WorkerId worker);
  // Suspend the newest process, if there is one, for DURATION or until it ends; 0: it continues.
  void SuspendServer(ServerId server, absl::Duration duration);
  void SuspendWorker(WorkerId worker, absl::Duration duration);

  // Run the events of the next TIME, or until all workers have finished, or have finished or failed.
  // The last two return false if TIME passes first; DescribeWorkers then says why.
  void RunFor(absl::Duration time);
  bool RunUntilFinished(absl::Duration time);
  // Runs the events until DONE returns true, at most to the time END. Returns its last result.
  bool RunUntil(absl::Duration end, const std::function<bool()>& done);
  bool RunUntilEnded(absl::Duration time);
  // Workers that have trained no longer stay (VirtualTask::stays), and leave.
  void LetWorkersLeave();
  std::string DescribeWorkers() const;

  VirtualTime& time() { return time_; }
  Network& network() { return network_; }
  // Returns the files of SERVER, in which faults can be injected. If they crash, or the event log
  // cannot be written, or the server gives up its job, the process ends with a loss of power.
  FaultyFiles& files(ServerId server) { return servers_[server.value]->files; }
  // Returns the job of SERVER; null: it has no process.
  Job* job(ServerId server) { return servers_[server.value]->job.get(); }
  // Returns the newest process of WORKER; null: it has none.
  VirtualWorker* worker(WorkerId worker) {
    const auto& process = workers_[worker.value];
    return process == nullptr ? nullptr : process->worker.get();
  }
  // Returns what the processes of WORKER have pushed. REQUIRES: each ended before the next started.
  const PushedExamples& pushed(WorkerId worker) const { return pushed_[worker.value]; }
  // REQUIRES: the cluster was made without an observer.
  ClusterLedger& ledger() { return *ledger_; }
  // Returns why SERVER has given up its job; OK: it has not.
  const absl::Status& failure(ServerId server) const { return servers_[server.value]->failure; }

  // Returns the masters of all servers by the names of their tensors. Runs the events until the
  // servers have answered. REQUIRES: the servers have processes.
  std::map<std::string, std::vector<float>> Masters();

 private:
  struct Server {
    Server(uint64_t seed, VirtualTime& time) : files(seed), process(time) {}
    FaultyFiles files;
    VirtualProcess process;
    std::unique_ptr<Job> job;
    std::shared_ptr<const Checkpoint> snapshot;  // see DurableOptions
    bool restart_wanted = false;
    bool drained = false;
    bool log_failed = false;
    absl::Status failure;
    uint64_t epoch = 0;
  };

  struct WorkerProcess {
    explicit WorkerProcess(VirtualTime& time) : process(time) {}
    VirtualProcess process;
    std::unique_ptr<VirtualWorker> worker;
  };

  absl::Status StartJob(ServerId server, bool in_place);
  void Trace(const std::string& text);
  absl::Status MakeJobOf(ServerId server, bool in_place);
  void EndJob(ServerId server);
  // The servers have gone back to FIRST: forgets the later pushes of workers that have left.
  void UndoDeparted(Step first);
  // Does what main() of a server does: makes the job of a server anew that was rolled back, ends a
  // process that was drained, and one whose event log has failed or that cannot go back. A process
  // also ends with its machine.
  void ActForProcesses();
  // Stops the job of SERVER in order. Returns false if its log or its machine fails meanwhile.
  bool StopJob(Server& server);
  // Does what a supervisor does: starts workers again that were refused because their number was in
  // use. A server that was suspended finds old messages of an earlier process, which looks alive. If
  // another process of the worker runs, it has the number.
  void RestartRefusedWorkers();
  // Calls ACTION(worker, process) for each process of a worker, in the order of the workers.
  template <typename Action>
  void ForEachWorker(Action action) const;
  void RunNext();

  const JobSpec spec_;
  const VirtualTask task_;
  const ClusterOptions options_;
  const Partition partition_;
  VirtualTime time_;
  std::optional<ClusterLedger> ledger_;  // nullopt: options_.observer observes
  ClusterObserver& observer_;
  Network network_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<PushedExamples> pushed_;                   // by worker
  std::vector<std::unique_ptr<WorkerProcess>> workers_;  // by worker: the newest process
  // Processes that run although a newer one has or wants their number, in the order of their starts.
  std::vector<std::pair<WorkerId, std::unique_ptr<WorkerProcess>>> predecessors_;
  uint64_t starts_ = 0;         // of server processes
  bool worker_failed_ = false;  // since the last RestartRefusedWorkers
  ConfirmedRules confirmed_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_CLUSTER_H_
