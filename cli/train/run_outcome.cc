#include "cli/train/run_outcome.h"

#include <signal.h>

namespace thinwire {

ExitCode ExitCodeOf(int stop_signal, const RunOutcome& outcome, const RunRecord& record) {
  using State = WorkerRow::State;
  if (outcome.gave_model_up) return ExitCode::kIo;
  if (stop_signal == SIGINT) return ExitCode::kInterrupted;
  if (stop_signal != 0) return ExitCode::kPreempted;
  if (record.CountOf(State::kDiverged) > 0) return ExitCode::kDiverged;
  if (record.CountOf(State::kDone) > 0 && record.lost_servers().empty())
    return outcome.model_is_missing ? ExitCode::kUnavailable : ExitCode::kOk;
  return outcome.had_wrong_config ? ExitCode::kConfig : ExitCode::kUnavailable;
}

}  // namespace thinwire
