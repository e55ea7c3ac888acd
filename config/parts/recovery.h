// The part `recovery` of the job file.
#ifndef THINWIRE_CONFIG_PARTS_RECOVERY_H_
#define THINWIRE_CONFIG_PARTS_RECOVERY_H_

#include <vector>

#include "common/spec/recovery_spec.h"
#include "config/parts/condition.h"
#include "proto/job.pb.h"

namespace thinwire {

RecoverySpec RecoverySpecOf(const Recovery& r);

std::vector<Condition> RecoveryConditions();

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PARTS_RECOVERY_H_
