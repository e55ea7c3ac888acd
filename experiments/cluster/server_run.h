// ServerRun: a run with servers (run.h): the real jobs of the servers and the real client cores of
// the workers on one virtual time (sim/cluster.h). Only the learning task, its computing times, the
// links and the costs of codecs are the laboratory's.
//
// Time and bytes count from the moment at which the last worker begins its first step. Joining and
// the first parameters take neither.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_SERVER_RUN_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_SERVER_RUN_H_

#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"

namespace thinwire::lab {

// REQUIRES: SPEC is supported in virtual time. Errors: those of RunParameterServer.
absl::StatusOr<RunResult> RunServers(const RunSpec& spec, const MakeLearningTask& task,
                                     const RunControl& control);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_SERVER_RUN_H_
