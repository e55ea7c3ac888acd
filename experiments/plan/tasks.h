// LearningTasks of a run: the job's model and dataset, or the synthetic task of its machines.
//
// A gradient of the job's task is bit-equal to that of a worker process: the same batch, the same
// random seed, and LibTorch with one thread, for which callers call UseThreads(1)
// (worker/models/factory.h). Two parts differ from a worker process:
//   - The running moments of batch normalization are not kept between steps, because the gradient does
//     not depend on them. Test() computes them anew at the given parameters (docs/decisions/0106).
//   - A TorchScript model computes one gradient at a time, because its random operators draw from a
//     generator that all threads of the process share.
#ifndef THINWIRE_EXPERIMENTS_PLAN_TASKS_H_
#define THINWIRE_EXPERIMENTS_PLAN_TASKS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/spec/task_spec.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/run.h"
#include "worker/datasets/load.h"

namespace thinwire::lab {

// TaskSource makes the tasks of one run after the other. It keeps the dataset of the last run in
// memory, which all tasks share. Not thread-safe.
class TaskSource {
 public:
  // Returns the function that makes the tasks of SPEC. Errors: InvalidArgument for settings that
  // the laboratory does not support; those of LoadDatasets.
  absl::StatusOr<MakeLearningTask> TasksOf(const RunSpec& spec);

  // Returns a hash of the dataset and of the model file of SPEC; 0 for a synthetic task. Errors:
  // those of LoadDatasets, and NotFound if the model file cannot be read.
  absl::StatusOr<uint64_t> ContentHashOf(const RunSpec& spec);

 private:
  absl::Status Load(const TaskSpec& task);

  std::string loaded_;  // the settings of `datasets_`
  std::shared_ptr<const Datasets> datasets_;
  uint64_t hash_ = 0;  // of `datasets_`
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_TASKS_H_
