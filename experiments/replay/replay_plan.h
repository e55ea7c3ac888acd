// PlanReplay makes an experiment of a recording, whose results are compared in a report: the axis
// `run` has the recorded run as it was, and, if settings are given, the changed run.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_REPLAY_PLAN_H_
#define THINWIRE_EXPERIMENTS_REPLAY_REPLAY_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/plan/experiment_file.h"
#include "experiments/replay/recording.h"

namespace thinwire::lab {

// CHANGES are settings of the job, "FIELD=VALUE". Errors: InvalidArgument with one line per problem
// of a setting or of the changed job.
absl::StatusOr<Plan> PlanReplay(const Recording& recording,
                                const std::vector<std::string>& changes);

// Returns a text that differs between recordings.
std::string IdentityOf(const Recording& recording);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_REPLAY_PLAN_H_
