// The exit code of a training run.
#ifndef THINWIRE_CLI_TRAIN_RUN_OUTCOME_H_
#define THINWIRE_CLI_TRAIN_RUN_OUTCOME_H_

#include "cli/train/run_record.h"
#include "common/base/exit_code.h"

namespace thinwire {

struct RunOutcome {
  bool gave_model_up = false;     // a worker was stopped while it could not write the model file
  bool model_is_missing = false;  // every worker has ended, but this machine has no model file
  bool had_wrong_config = false;  // a process failed with kConfig
};

// Returns the code of the first row that applies. STOP_SIGNAL: the first one that the run received,
// or 0.
//
//   gave_model_up                                         kIo
//   SIGINT                                                kInterrupted
//   another stop signal                                   kPreempted
//   a worker diverged                                     kDiverged
//   a worker is done, no server is lost, no model         kUnavailable
//   a worker is done, no server is lost                   kOk
//   had_wrong_config                                      kConfig
//   otherwise                                             kUnavailable
ExitCode ExitCodeOf(int stop_signal, const RunOutcome& outcome, const RunRecord& record);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_OUTCOME_H_
