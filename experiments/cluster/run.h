// A run is one job on simulated machines in virtual time (docs/experiments.md).
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_RUN_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/spec/job_spec.h"
#include "experiments/cluster/learning_task.h"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace thinwire::lab {

// A run without its axes: everything that its result depends on.
struct RunSpec {
  JobConfig config;  // of the job; task.seed is the seed of the run
  JobSpec job;       // the same, checked
  Machines machines;
  std::string folder;  // of the experiment file
  uint32_t tests = 20;
};

// The resources of the process that a run uses.
struct RunControl {
  uint32_t threads = 1;  // threads that compute gradients; the result does not depend on them
  // Called now and then with the finished part of the run, 0 to 1. If it returns false, the run
  // ends with a Cancelled error. Null: never called.
  std::function<bool(double done)> progress;
};

// Each function returns the result of the run. Two calls with the same SPEC return the same result.
// Errors: InvalidArgument if SPEC has a setting that virtual time does not support, with its name;
// Cancelled; errors of the task.

// Returns OK if a run with servers supports the settings of SPEC, or else their problems.
absl::Status CheckSupported(const RunSpec& spec);
// Workers and servers (Exchange servers): parameter_server_run.cc. REQUIRES: spec.machines has no
// imposed_staleness (RunImposedStaleness).
absl::StatusOr<RunResult> RunParameterServer(const RunSpec& spec, const MakeLearningTask& task,
                                             const RunControl& control);
// Workers that exchange gradients with each other (Exchange ring and gtopk_tree): peer_run.cc.
absl::StatusOr<RunResult> RunPeers(const RunSpec& spec, const MakeLearningTask& task,
                                   const RunControl& control);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_RUN_H_
