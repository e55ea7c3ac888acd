// RunRecorder collects the result of a run with servers (RunResult in proto/experiment.proto).
//
// Shard 0 stands for the model: examples, updates and staleness are those of shard 0. Late and
// dropped pushes are those of all shards, as in the report of `thinwire train`. A point is recorded
// at the first moment at which every shard has all updates that shard 0 had when its examples
// reached the point's number. Tests run on the pool, from a copy of the masters, or of their
// averages if the job has a parameter_average, while the simulation goes on. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_RUN_RECORDER_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_RUN_RECORDER_H_

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/task_pool.h"
#include "proto/experiment.pb.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"

namespace thinwire::lab {

class RunRecorder {
 public:
  struct Plan {
    uint32_t worker_count = 0;
    uint64_t examples = 0;  // of all workers in the whole run
    uint32_t tests = 0;     // number of points
    // Returns the smallest number of steps that a worker has finished.
    std::function<Step()> finished_steps;
  };

  // PARTITION, SHARDS (by shard number) and POOL must outlive this object. NOW returns the time since
  // the beginning of the run.
  RunRecorder(const Plan& plan, const Partition& partition, std::vector<const Shard*> shards,
              std::function<absl::Duration()> now, TaskPool& pool);

  // Replaces SHARDS. The other workers and servers of the run have taken over, in the same state.
  void Watch(std::vector<const Shard*> shards);
  // Tests the current masters, or their averages. Errors: those of LearningTask::Test.
  std::future<absl::StatusOr<TestScore>> Test();
  // In a trial of push: adaptive, no point is recorded, and no loss is added: the run may go back. Its
  // examples and updates are then those with the version VERSION of the first shard.
  void SetTrial(bool trial) { trial_ = trial; }
  void GoBack(Version version);

  // The functions below record what happens at the current time.

  void Pushed(uint64_t bytes) { result_.set_push_bytes(result_.push_bytes() + bytes); }
  void Pulled(uint64_t bytes) { result_.set_pull_bytes(result_.pull_bytes() + bytes); }
  // WORKER begins a step that it computes for TIME.
  void Began(WorkerId worker, absl::Duration time);
  // WORKER computes for TIME in a step that has begun.
  void ComputesOn(WorkerId worker, absl::Duration time) { workers_[worker.value].computed += time; }
  // A gradient is ready.
  void Computed(const GradientResult& gradient);
  // SHARD has applied EVENT.
  void Applied(ShardId shard, const Event& event, const Effects& effects);
  // The lead has announced RULE.
  void Announced(const RuleEvent& rule);
  // WORKER has finished its last step.
  void Finished(WorkerId worker);

  // Returns the part of the planned examples that were accepted.
  double done() const;
  // Records the last point and waits for all tests. Returns the result without value_age. Errors:
  // those of LearningTask::Test.
  absl::StatusOr<RunResult> Finish();

 private:
  struct WorkerTimes {
    std::optional<absl::Duration> began;  // the last step
    absl::Duration computed;              // the sum of all steps
    absl::Duration finished;
  };

  void RecordPoint(absl::Duration when);

  const Plan plan_;
  const Partition& partition_;
  std::vector<const Shard*> shards_;
  const std::function<absl::Duration()> now_;
  TaskPool& pool_;
  RunResult result_;
  std::vector<WorkerTimes> workers_;
  std::vector<uint64_t> sent_values_;  // by shard: in the last push of worker 0
  std::vector<float> step_seconds_;
  double loss_sum_ = 0;  // since the last point
  uint64_t loss_examples_ = 0;
  bool trial_ = false;
  // The examples and the pushes of the first shard up to each version, in mode sync.
  std::vector<std::pair<uint64_t, uint64_t>> accepted_;
  std::optional<Version> due_;  // a point waits until every shard has this version
  std::vector<std::future<absl::StatusOr<TestScore>>> tests_;  // by point
};

// Returns the CRC-32C of PARAMETERS, as the report of `thinwire train` states it: of the values of
// all tensors, the tensors in the order of the names in SHAPES.
uint32_t ParametersCrc(std::span<const TensorShape> shapes, Tensors parameters);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_RUN_RECORDER_H_
