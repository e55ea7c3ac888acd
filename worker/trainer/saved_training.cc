#include "worker/trainer/saved_training.h"

#include <glog/logging.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/encode/worker_folder.h"
#include "common/base/status_macros.h"
#include "worker/models/model.h"
#include "worker/trainer/loss_scale.h"

namespace thinwire {

absl::StatusOr<bool> SavedTraining::Restore(Step step, bool after_rollback) {
  if (streaming_ != nullptr) streaming_->Forget();
  RETURN_IF_ERROR(RestoreLossScale(step, after_rollback));
  return RestoreTrainerState(step);
}

absl::Status SavedTraining::Save(Step step) {
  return parts_.client.state().Save(StateWriter(step));
}

absl::StatusOr<Step> SavedTraining::SaveIfDue(Step step) {
  if (!parts_.client.state().IsDue()) return step;
  ASSIGN_OR_RETURN(step, parts_.client.Settle());
  if (!parts_.client.state().IsDue()) return step;
  // After an error, the next wait of the step returns it.
  const absl::Status started = parts_.client.state().StartSave(StateWriter(step));
  if (started.ok()) return step;
  if (const auto more = failure_lines_.Next(parts_.clock.Now())) {
    LOG(ERROR) << "state not saved: " << started.message() << *more;
  }
  return step;
}

absl::Status SavedTraining::RestoreLossScale(Step step, bool after_rollback) {
  const client::WorkerFolder* const folder = parts_.client.state().folder();
  if (numbers_.scale() == nullptr || folder == nullptr) return absl::OkStatus();
  // Join has removed the states of steps above STEP.
  ASSIGN_OR_RETURN(const std::vector<Step> steps, folder->Steps());
  if (steps.empty() || (after_rollback && steps.back() != step)) return absl::OkStatus();
  const LossScaleFile file = {LossScalePath(folder->PathOf(steps.back())), options_.job,
                              options_.worker};
  const absl::StatusOr<LossScale::State> saved = ReadLossScale(file);
  if (absl::IsNotFound(saved.status())) return absl::OkStatus();
  RETURN_IF_ERROR(saved.status());
  numbers_.scale()->Restore(*saved);
  LOG(INFO) << file.path << ": loss scale " << numbers_.loss_scale();
  return absl::OkStatus();
}

TrainerStateFile SavedTraining::StateFileOf(Step step) const {
  return {TrainerStatePath(parts_.client.state().folder()->PathOf(step)), options_.job,
          options_.worker, step};
}

TrainerState SavedTraining::CurrentState() const {
  TrainerState state;
  if (parts_.model.has_buffers()) {
    absl::StatusOr<std::vector<ModelBuffer>> buffers = parts_.model.Buffers();
    if (buffers.ok()) state.buffers = *std::move(buffers);
  }
  if (local_steps_ != nullptr) state.local = local_steps_->state();
  if (streaming_ != nullptr) state.streaming = streaming_->state();
  return state;
}

absl::StatusOr<bool> SavedTraining::RestoreTrainerState(Step step) {
  const TrainerState present = CurrentState();
  if (present == TrainerState() || parts_.client.state().folder() == nullptr) {
    return false;
  }
  TrainerStateFile file = StateFileOf(step);
  absl::StatusOr<TrainerState> saved = ReadTrainerState(file, present);
  if (absl::IsNotFound(saved.status()) && step > Step{0}) {
    file = StateFileOf(Step{step.value - 1});
    saved = ReadTrainerState(file, present);
  }
  if (absl::IsNotFound(saved.status())) {
    if (!present.local.slots.empty() && step > Step{0} && present.local.update_count == 0) {
      LOG(INFO) << "the local optimizer starts without state, because none of this step was saved";
    }
    return false;
  }
  RETURN_IF_ERROR(saved.status());
  const bool has_buffers = !saved->buffers.empty();
  if (has_buffers) parts_.model.SetBuffers(saved->buffers);
  if (local_steps_ != nullptr) local_steps_->Restore(std::move(saved->local));
  // A worker that begins after STEP - 1 may have pushed a part of these local steps already.
  if (streaming_ != nullptr && file.step == step) {
    streaming_->Restore(std::move(saved->streaming));
  }
  LOG(INFO) << file.path << ": restored";
  return has_buffers;
}

client::StateSaver::WriteBeside SavedTraining::StateWriter(Step step) const {
  if (parts_.client.state().folder() == nullptr) return nullptr;
  std::optional<LossScale::State> scale;
  if (numbers_.scale() != nullptr) scale = numbers_.scale()->state();
  return [file = StateFileOf(step), scale,
          state = CurrentState()](const std::string& path) -> absl::Status {
    if (scale.has_value()) {
      RETURN_IF_ERROR(WriteLossScale({LossScalePath(path), file.job, file.worker}, *scale));
    }
    return state == TrainerState() ? absl::OkStatus() : WriteTrainerState(file, state);
  };
}

}  // namespace thinwire
