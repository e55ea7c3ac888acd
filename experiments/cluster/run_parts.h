// RunParts: the parts that every run of a job with a parameter server needs.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_RUN_PARTS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_RUN_PARTS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/model/partition.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/task_pool.h"

namespace thinwire::lab {

struct RunParts {
  std::unique_ptr<TaskPool> pool;
  Partition partition;  // of the task's tensors
  ComputeTimes times;
};

// Errors: those of TASK, of PlaceTensors, Partition::Make and ComputeTimes::Make.
absl::StatusOr<RunParts> MakeRunParts(const RunSpec& spec, const MakeLearningTask& task,
                                      uint32_t threads);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_RUN_PARTS_H_
