// SavedTraining saves and restores what a worker needs to go on with its training: the residuals
// (StateSaver), the loss scale and the TrainerState (trainer_state.h).
//
// The state is saved after joining, before each step of which the servers make a checkpoint, and
// when `stop` ends the training. The examples and the random numbers of a step depend only on the
// job's seed, the worker and the step (sampler.h), so they are no state. After a rollback, the
// model's buffers and the state of the local optimizer become those of the step from which the
// servers continue if they were saved before it; otherwise they stay. The parameters of streaming
// local steps become those of the servers if they were not saved before exactly this step.
#ifndef THINWIRE_WORKER_TRAINER_SAVED_TRAINING_H_
#define THINWIRE_WORKER_TRAINER_SAVED_TRAINING_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/encode/local_steps.h"
#include "client/encode/streaming_steps.h"
#include "common/base/ids.h"
#include "common/time/log_limit.h"
#include "worker/trainer/numeric_watch.h"
#include "worker/trainer/trainer_parts.h"
#include "worker/trainer/trainer_state.h"

namespace thinwire {

// Not thread-safe.
class SavedTraining {
 public:
  // LOCAL_STEPS is null without local steps, and STREAMING without streaming ones. All arguments
  // must outlive this object.
  SavedTraining(const TrainerOptions& options, const TrainerParts& parts, NumericWatch& numbers,
                client::LocalSteps* local_steps, client::StreamingSteps* streaming)
      : options_(options),
        parts_(parts),
        numbers_(numbers),
        local_steps_(local_steps),
        streaming_(streaming) {}

  // Restores what was saved before STEP, the first step of this process or the step from which the
  // servers continue. Returns whether the model's buffers were restored. Errors: those of reading
  // the files.
  absl::StatusOr<bool> Restore(Step step, bool after_rollback);

  // Saves the state before STEP, the next one.
  absl::Status Save(Step step);
  // Starts to save the state before STEP, the next one, if the servers make a checkpoint of it.
  // Waits for the verdicts of the earlier steps first, and returns the next step, a later one if a
  // push was late. Errors: those of Client::Settle.
  absl::StatusOr<Step> SaveIfDue(Step step);

 private:
  // Restores the loss scale of the newest saved state, after a rollback only that of STEP.
  absl::Status RestoreLossScale(Step step, bool after_rollback);
  // Restores the model's buffers and the state of the local optimizer if they were saved before
  // STEP or before the preceding one: a process that joins a round in progress begins after it.
  // Returns whether it has restored buffers.
  absl::StatusOr<bool> RestoreTrainerState(Step step);
  // Returns the file of the TrainerState of STEP.
  TrainerStateFile StateFileOf(Step step) const;
  // Returns the present state. Its buffers are empty if a model file cannot have them.
  TrainerState CurrentState() const;
  // Returns a function that saves copies of the present loss scale and TrainerState beside a
  // residual file of STEP.
  client::StateSaver::WriteBeside StateWriter(Step step) const;

  const TrainerOptions& options_;
  const TrainerParts& parts_;
  NumericWatch& numbers_;
  client::LocalSteps* const local_steps_;
  client::StreamingSteps* const streaming_;
  LogLimit failure_lines_{10, absl::Minutes(1)};  // about states that were not saved
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_SAVED_TRAINING_H_
