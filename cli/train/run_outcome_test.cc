#include "cli/train/run_outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace thinwire {
namespace {

WorkerEvent DoneEvent(uint32_t worker, bool diverged = false) {
  WorkerEvent event;
  event.set_worker(worker);
  event.mutable_done()->set_steps(5);
  if (diverged) event.mutable_done()->set_diverged("the loss is not finite");
  return event;
}

RunRecord DoneRecord(bool diverged = false) {
  RunRecord record(2);
  record.Apply(DoneEvent(0, diverged));
  record.WorkerEnded(WorkerId{0}, {.code = diverged ? 65 : 0}, /*stopped=*/false);
  return record;
}

TEST(RunOutcomeTest, EachRowPrecedesTheNextOne) {
  RunRecord lost = DoneRecord();
  lost.ServerEnded(ServerId{0}, {.signal = 9});
  const RunRecord done = DoneRecord(), diverged = DoneRecord(/*diverged=*/true);
  RunOutcome outcome = {.gave_model_up = true, .model_is_missing = true, .had_wrong_config = true};
  EXPECT_EQ(ExitCodeOf(SIGINT, outcome, diverged), ExitCode::kIo);
  outcome.gave_model_up = false;
  EXPECT_EQ(ExitCodeOf(SIGINT, outcome, diverged), ExitCode::kInterrupted);
  EXPECT_EQ(ExitCodeOf(SIGHUP, outcome, diverged), ExitCode::kPreempted);
  EXPECT_EQ(ExitCodeOf(0, outcome, diverged), ExitCode::kDiverged);
  EXPECT_EQ(ExitCodeOf(0, outcome, done), ExitCode::kUnavailable);
  outcome.model_is_missing = false;
  EXPECT_EQ(ExitCodeOf(0, outcome, done), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(0, outcome, lost), ExitCode::kConfig);
  outcome.had_wrong_config = false;
  EXPECT_EQ(ExitCodeOf(0, outcome, lost), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(0, outcome, RunRecord(2)), ExitCode::kUnavailable);
}

}  // namespace
}  // namespace thinwire
