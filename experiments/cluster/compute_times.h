// ComputeTimes draws the virtual time of one forward and backward pass of a worker (ComputeTime in
// proto/experiment.proto). A step has one pass, or one for every accumulated batch and every local
// step. A time depends only on the seed, the worker and the number of the pass, so the order of
// calls does not matter. Immutable.
//
// A worker does not compute during its pauses. A pause that begins during another one extends it.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_COMPUTE_TIMES_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_COMPUTE_TIMES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

class ComputeTimes {
 public:
  // FOLDER is the folder of the experiment file, from which the path of a trace starts. Errors:
  // InvalidArgument "machines.compute.FIELD: ..." for a value that makes no sense; NotFound or
  // InvalidArgument with the line for a trace that cannot be read.
  //
  // A trace begins with the line "worker,step,seconds". It has times for the workers 0 to n - 1, in
  // any order. Worker w of the run repeats the times of worker w mod n.
  static absl::StatusOr<ComputeTimes> Make(const ComputeTime& spec, const std::string& folder,
                                           uint64_t seed);

  // Returns the computing time of WORKER's pass number PASS if it begins at time BEGIN: the drawn
  // time, and the time of every pause of the worker that delays it.
  absl::Duration Of(WorkerId worker, uint64_t pass, absl::Duration begin) const;
  // Returns the computing time of WORKER's STEP if it begins at time BEGIN and has PASSES passes. A
  // step with all its examples has STEP_PASSES of them.
  absl::Duration OfStep(WorkerId worker, Step step, uint64_t step_passes, uint64_t passes,
                        absl::Duration begin) const;
  // As OfStep, for the passes from FIRST to before END.
  absl::Duration OfPasses(WorkerId worker, Step step, uint64_t step_passes, uint64_t first,
                          uint64_t end, absl::Duration begin) const;
  // As OfStep, for a step of JOB, whose straggler delay is added. A deal may have increased PASSES.
  absl::Duration OfJobStep(const JobSpec& job, WorkerId worker, Step step, uint64_t passes,
                           absl::Duration begin) const {
    return OfStep(worker, step, std::max(job.task.step_passes(), passes), passes, begin) +
           job.DelayOf(worker);
  }

 private:
  ComputeTimes(const ComputeTime& spec, uint64_t seed,
               std::vector<std::vector<absl::Duration>> trace);

  // Returns the time of PASS without pauses, as if WORKER were not a slow worker.
  absl::Duration Drawn(WorkerId worker, uint64_t pass) const;
  // Returns the time that WORKER is paused if it computes for the time WORK from BEGIN on.
  absl::Duration Paused(WorkerId worker, absl::Duration begin, absl::Duration work) const;

  ComputeTime spec_;
  uint64_t seed_;
  std::vector<std::vector<absl::Duration>> trace_;  // by worker and pass; empty: none
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_COMPUTE_TIMES_H_
