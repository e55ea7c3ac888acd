// The part `task` of the job file.
#ifndef THINWIRE_CONFIG_PARTS_TASK_H_
#define THINWIRE_CONFIG_PARTS_TASK_H_

#include <vector>

#include "common/spec/task_spec.h"
#include "config/parts/condition.h"
#include "proto/job.pb.h"

namespace thinwire {

TaskSpec TaskSpecOf(const Task& t);

std::vector<Condition> TaskConditions();

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PARTS_TASK_H_
