#include "experiments/cluster/run_parts.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/spec/place_tensors.h"

namespace thinwire::lab {

absl::StatusOr<RunParts> MakeRunParts(const RunSpec& spec, const MakeLearningTask& task,
                                      uint32_t threads) {
  const JobSpec& job = spec.job;
  ASSIGN_OR_RETURN(std::unique_ptr<TaskPool> pool, TaskPool::Make(task, threads));
  std::vector<TensorShape> tensors = pool->own().tensors();
  RETURN_IF_ERROR(PlaceTensors(job.AllGroups(), tensors));
  ASSIGN_OR_RETURN(Partition partition,
                   Partition::Make(std::move(tensors), job.shard_size, job.server_count));
  ASSIGN_OR_RETURN(ComputeTimes times,
                   ComputeTimes::Make(spec.machines.compute(), spec.folder, job.task.seed));
  return RunParts{std::move(pool), std::move(partition), std::move(times)};
}

}  // namespace thinwire::lab
