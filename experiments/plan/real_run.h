// Runs a case as real processes of this machine, with `thinwire train`, and returns its report as
// the result of a run.
#ifndef THINWIRE_EXPERIMENTS_PLAN_REAL_RUN_H_
#define THINWIRE_EXPERIMENTS_PLAN_REAL_RUN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"
#include "worker/process/termination.h"

namespace thinwire::lab {

// Returns OK if real processes of this machine can run SPEC. Errors: InvalidArgument with the first
// setting that only simulated machines have.
absl::Status CheckReal(const RunSpec& spec);

struct RealRunOptions {
  std::string thinwire;  // path of the program
  std::string folder;    // for the job file, the report and the log of the newest run
};

// Runs SPEC. A signal that TERMINATION receives ends the processes. Errors: Cancelled after a
// signal; Unavailable with the path of the log if the run fails. REQUIRES: CheckReal accepts SPEC.
absl::StatusOr<RunResult> RunReal(const RunSpec& spec, const RealRunOptions& options,
                                  Termination& termination);

// Returns the result that the report TEXT of `thinwire train` describes. Its points are the ends of
// epochs. Errors: InvalidArgument if TEXT is no report.
absl::StatusOr<RunResult> ResultOfReport(std::string_view text);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_REAL_RUN_H_
