#include "server/protocols/precision/stored_trials.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "proto/precision_text.h"
#include "server/durable/message_file.h"

namespace thinwire {
namespace {

constexpr char kFile[] = "precision";

}  // namespace

StoredTrials::StoredTrials(AdaptiveSpec spec, Files& files, const std::string& folder,
                           Dealer& dealer)
    : files_(files),
      folder_(folder),
      path_(absl::StrCat(folder, "/", kFile)),
      arms_(spec.arms),
      dealer_(dealer),
      rounds_(std::move(spec)) {}

absl::Status StoredTrials::Start(RunId run, bool recovered) {
  run_ = run;
  RETURN_IF_ERROR(recovered ? Load() : Store());
  SetLimit(std::nullopt);
  return absl::OkStatus();
}

absl::Status StoredTrials::Load() {
  constexpr char kExpected[] = "the state of the run's trials";
  PrecisionState state;
  const absl::Status read = ReadMessage(files_, path_, kExpected, state);
  if (absl::IsNotFound(read)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     ": missing (expected the trials of push: adaptive; a state that was converted "
                     "or imported has none)"));
  }
  RETURN_IF_ERROR(read);
  if (state.run() != run_.value) {
    return absl::DataLossError(absl::StrCat(path_, ": not ", kExpected));
  }
  const absl::Status restored = rounds_.Restore(std::move(state));
  if (restored.ok()) return restored;
  return absl::Status(restored.code(), absl::StrCat(path_, ": ", restored.message()));
}

absl::Status StoredTrials::Add(const HeartbeatRequest& request) {
  for (const PrecisionTest& test : request.tests()) {
    if (returns_) break;  // the tests belong to the trial that has ended
    const int before = rounds_.state().decision_size();
    const TrialRounds::Action action = rounds_.Add(test);
    RETURN_IF_ERROR(Perform(action));
    if (rounds_.state().decision_size() > before) LogDecision();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Step>> StoredTrials::Update(Step frontier, std::optional<Step> kept,
                                                         std::optional<Step> announced) {
  if (!returns_) SetLimit(announced);
  if (!kept.has_value()) return std::nullopt;
  if (!returns_) RETURN_IF_ERROR(Perform(rounds_.Advance(frontier, *kept)));
  if (!returns_ || *kept != rounds_.begin()) return std::nullopt;
  LOG(INFO) << "adaptive precision: all processes return to step " << rounds_.begin() << " for "
            << (rounds_.tries() ? "a trial of " : "") << ArmNames(arms_, rounds_.arms());
  return rounds_.begin();
}

absl::Status StoredTrials::Perform(TrialRounds::Action action) {
  if (action == TrialRounds::Action::kNone) return absl::OkStatus();
  returns_ = action == TrialRounds::Action::kReturn;
  // Until the return, the workers stay at the end of the trial.
  if (!returns_) SetLimit(std::nullopt);
  return Store();
}

void StoredTrials::SetLimit(std::optional<Step> announced) {
  const std::optional<Step> next = rounds_.snapshot();
  // A worker that does not know that the snapshot is due would not save its state before the step.
  dealer_.set_limit(next.has_value() && announced != next ? next : rounds_.limit());
}

absl::Status StoredTrials::Store() {
  PrecisionState state = rounds_.state();
  state.set_run(run_.value);
  return WriteMessage(files_, folder_, kFile, state);
}

bool StoredTrials::MaySave(Step frontier) const {
  const std::optional<Step> next = rounds_.snapshot();
  return !returns_ && !rounds_.tries() && (!next.has_value() || frontier <= *next);
}

void StoredTrials::LogDecision() const {
  const PrecisionDecision& decision = *rounds_.state().decision().rbegin();
  LOG(INFO) << "adaptive precision: " << ChosenText(decision) << " from step " << decision.step()
            << " to " << decision.next_step()
            << ", predicted test accuracy there: " << CandidatesText(decision);
}

void StoredTrials::FillIn(JoinReply& reply) const {
  for (const uint32_t arm : rounds_.arms()) reply.add_push_candidates(arm);
  if (rounds_.tries()) reply.set_trial_step(rounds_.begin().value);
}

void StoredTrials::FillIn(StatusReply& reply) const {
  *reply.mutable_precision_decisions() = rounds_.state().decision();
}

}  // namespace thinwire
