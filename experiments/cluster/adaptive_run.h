// A run with `push: adaptive` in virtual time (docs/adaptive_precision.md).
//
//   state -> a trial of each arm, from the same state -> choice -> continue_steps steps -> state -> ...
//
// The run continues from the end of the chosen arm's trial. The other trials are discarded, but
// their time and bytes count.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_ADAPTIVE_RUN_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_ADAPTIVE_RUN_H_

#include "absl/status/statusor.h"
#include "experiments/cluster/lab_cluster.h"
#include "experiments/cluster/run.h"

namespace thinwire::lab {

// Returns the result of the run, without value_age. CLUSTER has run nothing yet. Errors: those of
// LabCluster. REQUIRES: the job's push is adaptive and its mode is sync.
absl::StatusOr<RunResult> RunAdaptive(LabCluster& cluster, const RunControl& control);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_ADAPTIVE_RUN_H_
