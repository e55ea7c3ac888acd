// The part `optimization` of the job file, without the selection of gradients
// (config/parts/compression.h).
#ifndef THINWIRE_CONFIG_PARTS_OPTIMIZATION_H_
#define THINWIRE_CONFIG_PARTS_OPTIMIZATION_H_

#include <vector>

#include "common/spec/optimizer_spec.h"
#include "common/spec/schedule_spec.h"
#include "config/parts/condition.h"
#include "proto/job.pb.h"

namespace thinwire {

OptimizerSpec OptimizerSpecOf(const Optimization& o);
ScheduleSpec ScheduleSpecOf(const Optimization& o);

std::vector<Condition> OptimizationConditions();

// Returns true if the servers select gradients (gradient_selection).
bool Selects(const JobConfig& config);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PARTS_OPTIMIZATION_H_
