// LabCluster is the servers and the workers of a run in virtual time. It runs one stretch of steps
// after the other. Each stretch has new servers and workers, which continue from the initial state
// or from a ClusterState; virtual time goes on. A stretch begins with a read of all parameters. Not
// thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LAB_CLUSTER_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LAB_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/encode/encoding_error.h"
#include "client/encode/residual_file.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/lab_lead.h"
#include "experiments/cluster/lab_server.h"
#include "experiments/cluster/lab_worker.h"
#include "experiments/cluster/links.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/run_recorder.h"
#include "experiments/cluster/step_pushes.h"
#include "experiments/cluster/task_pool.h"
#include "proto/control.pb.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/shard_snapshot.h"
#include "server/edge/lead/round_sum.h"

namespace thinwire::lab {

// The state of all servers and workers between two steps, in mode sync. Batches and random numbers
// depend on the step alone. Copies share the arrays of the shards.
struct ClusterState {
  Step step;                                    // the next step of every worker
  std::vector<ShardSnapshot> shards;            // by shard number
  std::vector<client::SavedResiduals> workers;  // by worker number
};

// A part of a run.
struct Stretch {
  const ClusterState* begin = nullptr;  // null: the initial state
  Step end;
  std::vector<CodecSpec> codecs;      // by shard; empty: those of the job
  std::optional<Step> measured_from;  // LabWorker::Shared
};

class LabCluster {
 public:
  // SPEC must outlive the cluster. Errors: those of the task and of ComputeTimes.
  static absl::StatusOr<std::unique_ptr<LabCluster>> Make(const RunSpec& spec,
                                                          const MakeLearningTask& task,
                                                          uint32_t threads);

  const RunSpec& spec() const { return spec_; }
  const Partition& partition() const { return partition_; }
  absl::Duration now() const { return queue_.elapsed(); }
  // Returns the number of steps and of examples of the whole run.
  Step end() const { return Step{pool_->own().steps()}; }
  uint64_t examples() const { return pool_->own().examples(); }

  // Returns an empty record of EXAMPLES examples with TESTS points.
  std::unique_ptr<RunRecorder> MakeRecord(uint64_t examples, uint32_t tests);

  // Begin makes the servers and the workers of STRETCH, and Run runs them; RECORD records them and
  // must outlive both. Run calls GO_ON now and then. Errors: Cancelled if it returned false; those
  // of the task and of codecs.
  absl::Status Begin(const Stretch& stretch, RunRecorder& record);
  absl::Status Run(const std::function<bool()>& go_on);

  // The functions below describe the state after the last Run. Save REQUIRES mode sync.
  absl::StatusOr<ClusterState> Save();
  // Returns the measured errors; 0 unless they were measured.
  const client::EncodingError& encoding_error() const { return workers_[0]->encoding_error(); }
  // Adds the ages of the sent values to RESULT.
  void AddValueAges(RunResult& result) const;

 private:
  LabCluster(const RunSpec& spec, Partition partition, std::vector<GroupUpdate> updates,
             ComputeTimes times, std::unique_ptr<TaskPool> pool);

  void MakeServers(const Stretch& stretch);
  absl::Status MakeWorkers(const Stretch& stretch);
  void Finish(WorkerId worker, bool leaves);
  // Changes the rule if the lead chooses another one after EVENT of the first shard.
  void TuneRule(const Event& event, const Effects& effects);
  size_t MachineOf(ServerId server) const { return first_server_ + server.value; }
  // SERVER has told the lead its part of a round.
  void AddPart(ServerId server, const FullRound& part);
  // Lets the lead decide on a larger batch after a round of its shards.
  void RoundClosed();
  // Returns the smallest number of steps that a worker has finished.
  Step FinishedSteps() const;
  void Fail(const absl::Status& status) { status_.Update(status); }

  const RunSpec& spec_;
  const Partition partition_;
  const std::vector<GroupUpdate> updates_;  // by parameter group
  const ComputeTimes times_;
  const CodecCosts costs_;
  VirtualTime queue_;
  LinkModel network_;
  const size_t first_server_;
  LabLead lead_;
  absl::Status status_;
  RunRecorder* record_ = nullptr;  // of the current stretch
  size_t running_count_ = 0;       // workers that have not finished
  // They refer to each other, so they stay at their addresses.
  std::vector<std::unique_ptr<LabServer>> servers_;
  std::optional<RoundSum> round_sum_;  // of the lead of a job with clip_norm
  std::vector<std::unique_ptr<LabWorker>> workers_;
  Step end_;                                        // of the current stretch
  std::shared_ptr<const std::vector<Deal>> deals_;  // of lead_; null: none
  // Declared last: its threads use the workers.
  std::unique_ptr<TaskPool> pool_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LAB_CLUSTER_H_
