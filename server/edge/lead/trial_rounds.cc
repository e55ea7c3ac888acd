#include "server/edge/lead/trial_rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/edge/lead/precision_choice.h"

namespace thinwire {
namespace {

bool IsValid(const PrecisionTest& test) {
  return test.accuracy() >= 0 && test.accuracy() <= 1 && test.seconds_per_step() >= 0 &&
         std::isfinite(test.seconds_per_step());
}

}  // namespace

TrialRounds::TrialRounds(AdaptiveSpec spec) : spec_(std::move(spec)) { state_.set_tries(true); }

absl::Status TrialRounds::Restore(PrecisionState state) {
  uint32_t largest = std::max(state.arm(), state.chosen());
  for (const auto& trial : state.trial()) {
    largest = std::max(largest, trial.arm());
    if (trial.x_size() == 0 || trial.x_size() != trial.y_size()) {
      return absl::DataLossError("a trial without tests");
    }
  }
  if (largest >= spec_.arms.size()) {
    return absl::DataLossError(absl::StrCat("an unknown candidate (expected below ",
                                            spec_.arms.size(), ", got ", largest, ")"));
  }
  state_ = std::move(state);
  tests_.clear();
  return absl::OkStatus();
}

std::optional<Step> TrialRounds::snapshot() const {
  const Step next{state_.next_step()};
  if (tries() || !TrialsBeginAt(spec_, next, Step{state_.end()})) return std::nullopt;
  return next;
}

std::optional<Step> TrialRounds::limit() const {
  if (tries()) return begin() + spec_.speculate_steps;
  const std::optional<Step> next = snapshot();
  return next.has_value() ? std::optional(*next + 1) : std::nullopt;
}

std::optional<uint32_t> TrialRounds::NextArm() const {
  const auto was_tried = [this](uint32_t arm) {
    return std::ranges::any_of(state_.trial(),
                               [arm](const auto& trial) { return trial.arm() == arm; });
  };
  for (uint32_t arm = 0; arm < spec_.arms.size(); ++arm) {
    const bool chosen = state_.has_chosen() && state_.chosen() == arm;
    if (!chosen && !was_tried(arm)) return arm;
  }
  if (state_.has_chosen() && !was_tried(state_.chosen())) return state_.chosen();
  return std::nullopt;
}

TrialRounds::Action TrialRounds::Add(const PrecisionTest& test) {
  if (!tries() || !IsValid(test) || Step{test.step()} < begin()) return Action::kNone;
  state_.set_end(test.end());
  // The members can have changed, and with them the number of steps.
  if (!TrialsBeginAt(spec_, begin(), Step{test.end()})) {
    return GoOn(state_.chosen(), Step{test.end()});
  }
  const Step last = begin() + spec_.speculate_steps;
  const bool is_known = !tests_.empty() && test.step() <= tests_.back().step();
  if (is_known || Step{test.step()} > last) return Action::kNone;
  if (!state_.has_accuracy()) state_.set_accuracy(test.accuracy());
  tests_.push_back(test);
  return Step{test.step()} == last ? EndTrial(test.seconds_per_step()) : Action::kNone;
}

TrialRounds::Action TrialRounds::EndTrial(double seconds_per_step) {
  PrecisionState::FinishedTrial& trial = *state_.add_trial();
  trial.set_arm(arm());
  // Steps may take no time. The largest gain then decides.
  trial.set_seconds_per_step(std::max(1e-9, seconds_per_step));
  for (const PrecisionTest& test : tests_) {
    if (Step{test.step()} == begin()) continue;
    trial.add_x(static_cast<double>(test.step()));
    trial.add_y(test.accuracy());
  }
  tests_.clear();
  const std::optional<uint32_t> next = NextArm();
  if (!next.has_value()) return Decide();
  state_.set_arm(*next);
  return Action::kReturn;
}

TrialRounds::Action TrialRounds::Decide() {
  std::vector<ArmTrial> trials;
  for (const auto& finished : state_.trial()) {
    ArmTrial& tried = trials.emplace_back();
    tried.arm = finished.arm();
    tried.trial.seconds_per_step = finished.seconds_per_step();
    for (int i = 0; i < finished.x_size(); ++i) {
      tried.trial.curve.push_back({.x = finished.x(i), .y = finished.y(i)});
    }
  }
  std::ranges::sort(trials, {}, &ArmTrial::arm);
  const Step next = NextDecision(spec_, begin(), Step{state_.end()});
  const PrecisionChoice choice =
      ChoosePrecision(spec_, trials, begin(), state_.accuracy(), next,
                      state_.has_chosen() ? std::optional<size_t>(state_.chosen()) : std::nullopt);
  *state_.add_decision() = choice.decision;
  return GoOn(static_cast<uint32_t>(choice.arm), next);
}

TrialRounds::Action TrialRounds::GoOn(uint32_t arm, Step next) {
  const bool stays = arm == state_.arm();
  state_.set_tries(false);
  state_.set_arm(arm);
  state_.set_chosen(arm);
  state_.set_next_step(next.value);
  state_.clear_trial();
  state_.clear_accuracy();
  tests_.clear();
  return stays ? Action::kStore : Action::kReturn;
}

TrialRounds::Action TrialRounds::Advance(Step frontier, Step kept) {
  const std::optional<Step> next = snapshot();
  if (!next.has_value() || kept != *next || frontier <= *next) return Action::kNone;
  state_.set_step(next->value);
  state_.set_tries(true);
  state_.set_arm(*NextArm());
  return Action::kReturn;
}

}  // namespace thinwire
