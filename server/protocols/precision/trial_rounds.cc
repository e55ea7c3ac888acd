#include "server/protocols/precision/trial_rounds.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

bool IsValid(const PrecisionTest& test) {
  return test.accuracy() >= 0 && test.accuracy() <= 1 && test.seconds_per_step() >= 0 &&
         std::isfinite(test.seconds_per_step()) && test.encoding_error() >= 0 &&
         std::isfinite(test.encoding_error());
}

}  // namespace

TrialRounds::TrialRounds(AdaptiveSpec spec) : spec_(std::move(spec)) { state_.set_tries(true); }

absl::Status TrialRounds::Restore(PrecisionState state) {
  uint32_t largest = state.arm();
  for (const uint32_t arm : state.chosen()) largest = std::max(largest, arm);
  for (const auto& trial : state.trial()) {
    largest = std::max(largest, trial.arm());
    if (trial.x_size() == 0 || trial.x_size() != trial.y_size()) {
      return absl::DataLossError("a trial without tests");
    }
  }
  if (state.chosen_size() != 0 && state.chosen_size() != kTensorKinds) {
    return absl::DataLossError(absl::StrCat("candidates for ", state.chosen_size(),
                                            " kinds of tensors (expected ", kTensorKinds, ")"));
  }
  if (largest >= spec_.arms.size()) {
    return absl::DataLossError(absl::StrCat("an unknown candidate (expected below ",
                                            spec_.arms.size(), ", got ", largest, ")"));
  }
  state_ = std::move(state);
  tests_.clear();
  return absl::OkStatus();
}

void TrialRounds::Begin(const Partition& partition) { alone_ = KindsChosenAlone(spec_, partition); }

std::optional<TensorKind> TrialRounds::kind() const {
  return ChosenKind(alone_, static_cast<size_t>(state_.decision_size()));
}

KindArms TrialRounds::Chosen() const {
  KindArms arms = {};
  std::ranges::copy(state_.chosen(), arms.begin());
  return arms;
}

KindArms TrialRounds::arms() const {
  return tries() ? WithArm(Chosen(), kind(), state_.arm()) : Chosen();
}

std::optional<uint32_t> TrialRounds::CurrentArm() const {
  if (state_.chosen().empty()) return std::nullopt;
  return state_.chosen(static_cast<int>(kind().value_or(TensorKind::kMatrices)));
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
  const auto is_left = [this](uint32_t arm) {
    return std::ranges::count(state_.removed(), arm) == 0 &&
           std::ranges::none_of(state_.trial(),
                                [arm](const auto& trial) { return trial.arm() == arm; });
  };
  const std::optional<uint32_t> current = CurrentArm();
  for (uint32_t arm = 0; arm < spec_.arms.size(); ++arm) {
    if (arm != current && is_left(arm)) return arm;
  }
  return current.has_value() && is_left(*current) ? current : std::nullopt;
}

TrialRounds::Action TrialRounds::Add(const PrecisionTest& test) {
  if (!tries() || !IsValid(test) || Step{test.step()} < begin()) return Action::kNone;
  state_.set_end(test.end());
  // The members can have changed, and with them the number of steps.
  if (!TrialsBeginAt(spec_, begin(), Step{test.end()})) {
    return GoOn(Chosen(), Step{test.end()});
  }
  const Step last = begin() + spec_.speculate_steps;
  const bool is_known = !tests_.empty() && test.step() <= tests_.back().step();
  if (is_known || Step{test.step()} > last) return Action::kNone;
  if (!state_.has_accuracy()) state_.set_accuracy(test.accuracy());
  tests_.push_back(test);
  return Step{test.step()} == last ? EndTrial() : Action::kNone;
}

TrialRounds::Action TrialRounds::EndTrial() {
  const auto timed = std::find_if(tests_.rbegin(), tests_.rend(), [](const PrecisionTest& test) {
    return test.has_seconds_per_step();
  });
  if (timed == tests_.rend()) {
    tests_.clear();
    return Action::kReturn;
  }
  PrecisionState::FinishedTrial& trial = *state_.add_trial();
  trial.set_arm(state_.arm());
  // Steps may take no time. The largest gain then decides.
  trial.set_seconds_per_step(std::max(1e-9, timed->seconds_per_step()));
  const PrecisionTest& last = tests_.back();
  if (last.has_encoding_error()) trial.set_encoding_error(last.encoding_error());
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
    if (finished.has_encoding_error()) tried.encoding_error = finished.encoding_error();
    for (int i = 0; i < finished.x_size(); ++i) {
      tried.trial.curve.push_back({.x = finished.x(i), .y = finished.y(i)});
    }
  }
  std::ranges::sort(trials, {}, &ArmTrial::arm);
  // Only the first trials begin without residuals of other codecs.
  if (spec_.prune && !CurrentArm().has_value()) Prune(trials);
  for (const ArmTrial& tried : trials) {
    if (tried.removed) state_.add_removed(static_cast<uint32_t>(tried.arm));
  }
  const Step next = NextDecision(spec_, begin(), Step{state_.end()});
  PrecisionChoice choice =
      ChoosePrecision(spec_, trials, begin(), state_.accuracy(), next, CurrentArm());
  const std::optional<TensorKind> kind = this->kind();
  if (kind.has_value()) choice.decision.set_layers(std::string(TensorKindName(*kind)));
  const KindArms arms = WithArm(Chosen(), kind, static_cast<uint32_t>(choice.arm));
  const Action action = GoOn(arms, next);
  *state_.add_decision() = std::move(choice.decision);
  return action;
}

TrialRounds::Action TrialRounds::GoOn(const KindArms& arms, Step next) {
  const bool stays = arms == this->arms();
  state_.set_tries(false);
  state_.mutable_chosen()->Assign(arms.begin(), arms.end());
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
