// Runs an experiment: every run of its plan, one after the other, each on all threads. A finished
// result is stored at once, so an experiment that was stopped goes on with the first run without a
// result.
#ifndef THINWIRE_EXPERIMENTS_PLAN_RUNNER_H_
#define THINWIRE_EXPERIMENTS_PLAN_RUNNER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/terminal/console.h"
#include "common/time/clock.h"
#include "experiments/cluster/run.h"
#include "experiments/plan/experiment_file.h"

namespace thinwire::lab {

struct RunnerOptions {
  std::string folder;  // for the results
  uint32_t threads = 1;
};

// The parts of a runner that depend on the kind of its runs: in virtual time, or of real processes.
struct RunnerParts {
  // Returns the result of a run. Errors: Cancelled if RunControl::progress returned false.
  std::function<absl::StatusOr<RunResult>(const RunSpec&, const RunControl&)> run;
  // Describes what the result of a run depends on besides its RunSpec.
  std::function<absl::StatusOr<std::string>(const RunSpec&)> identity;
  std::function<bool()> stopped;  // returns true once the experiment is to stop
};

// Runs all runs of PLAN that have no stored result and writes the tables. Shows the progress on
// CONSOLE. Errors: Cancelled if `stopped` returned true; errors of the runs, with the case and the
// seed; those of PrepareFolder and of the file system.
absl::Status RunPlan(const Plan& plan, const RunnerOptions& options, const RunnerParts& parts,
                     Clock& clock, Console& console);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_RUNNER_H_
