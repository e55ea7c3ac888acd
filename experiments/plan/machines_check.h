// Checks the simulated machines of a case (Machines in proto/experiment.proto).
#ifndef THINWIRE_EXPERIMENTS_PLAN_MACHINES_CHECK_H_
#define THINWIRE_EXPERIMENTS_PLAN_MACHINES_CHECK_H_

#include "common/spec/job_spec.h"
#include "common/text/problems.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

// Returns the problems of MACHINES for JOB. A problem names its field by the path below `machines`,
// such as "worker_link.latency_ms". ComputeTimes::Make checks the field `compute`. A field that has
// no effect with the case's exchange, such as ring_format, is no problem: a setting cannot remove a
// field.
Problems CheckMachines(const Machines& machines, const JobSpec& job);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_MACHINES_CHECK_H_
