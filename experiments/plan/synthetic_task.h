// The synthetic task of an experiment (SyntheticTask in proto/experiment.proto): the function
// sum((x - m)^2) / 2. All values are those of counter-based random numbers:
//
//   m[i]     depends on the seed and i
//   noise    depends on the seed, the worker, the local step and i
//
// A random number is a sum of four uniform ones, scaled to the standard deviation 1. That is close
// enough to a normal distribution here, and takes one hash per value.
#ifndef THINWIRE_EXPERIMENTS_PLAN_SYNTHETIC_TASK_H_
#define THINWIRE_EXPERIMENTS_PLAN_SYNTHETIC_TASK_H_

#include <cstdint>
#include <memory>

#include "common/spec/task_spec.h"
#include "experiments/cluster/learning_task.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

// Returns a task whose parameters begin at 0. A gradient counts as TASK.gradient_examples()
// examples. Uses the examples, the local steps and the seed of TASK. REQUIRES: CheckMachines
// accepts SPEC.
std::unique_ptr<LearningTask> MakeSyntheticTask(const SyntheticTask& spec, uint32_t workers,
                                                const TaskSpec& task);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_SYNTHETIC_TASK_H_
