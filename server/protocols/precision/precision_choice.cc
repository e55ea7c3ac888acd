#include "server/protocols/precision/precision_choice.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace thinwire {
namespace {

// adaptive_prune removes arms with larger encoding errors.
constexpr double kLargestError = 1;

}  // namespace

bool TrialsBeginAt(const AdaptiveSpec& spec, Step step, Step end) {
  return step + spec.speculate_steps < end;
}

Step NextDecision(const AdaptiveSpec& spec, Step step, Step end) {
  const Step next = step + spec.speculate_steps + spec.continue_steps;
  return TrialsBeginAt(spec, next, end) ? next : end;
}

KindArms WithArm(KindArms arms, std::optional<TensorKind> kind, uint32_t arm) {
  if (kind.has_value()) {
    arms[static_cast<size_t>(*kind)] = arm;
  } else {
    arms.fill(arm);
  }
  return arms;
}

std::vector<TensorKind> KindsChosenAlone(const AdaptiveSpec& spec, const Partition& partition) {
  std::vector<TensorKind> alone;
  if (!spec.per_layer) return alone;
  for (const auto& [kind, largest] : LargestShards(partition)) {
    if (kind != TensorKind::kVectors) alone.push_back(kind);
  }
  return alone;
}

std::optional<TensorKind> ChosenKind(std::span<const TensorKind> alone, size_t decisions) {
  if (alone.empty() || decisions == 0) return std::nullopt;
  return alone[(decisions - 1) % alone.size()];
}

void Prune(std::span<ArmTrial> trials) {
  const auto errs = [](const ArmTrial& tried) {
    return tried.encoding_error.has_value() && *tried.encoding_error > kLargestError;
  };
  if (std::ranges::all_of(trials, errs)) return;
  for (ArmTrial& tried : trials) tried.removed = errs(tried);
}

PrecisionChoice ChoosePrecision(const AdaptiveSpec& spec, std::span<const ArmTrial> trials,
                                Step step, double accuracy, Step next,
                                std::optional<size_t> current) {
  std::vector<Trial> remaining;
  std::vector<size_t> arms;                 // of `remaining`
  std::optional<size_t> remaining_current;  // in `remaining`
  for (const ArmTrial& tried : trials) {
    if (tried.removed) continue;
    if (tried.arm == current) remaining_current = remaining.size();
    remaining.push_back(tried.trial);
    arms.push_back(tried.arm);
  }
  const ArmChoice choice = ChooseArm(remaining,
                                     {.accuracy = accuracy,
                                      .step = static_cast<double>(step.value),
                                      .next_decision = static_cast<double>(next.value)},
                                     remaining_current);
  PrecisionChoice result{.arm = arms[choice.chosen]};
  result.decision.set_step(step.value);
  result.decision.set_next_step(next.value);
  result.decision.set_accuracy(accuracy);
  size_t i = 0;  // in `remaining`
  for (const ArmTrial& tried : trials) {
    PrecisionDecision::Candidate& candidate = *result.decision.add_candidate();
    candidate.set_name(std::string(ArmName(spec.arms[tried.arm])));
    candidate.set_seconds_per_step(tried.trial.seconds_per_step);
    if (tried.encoding_error.has_value()) candidate.set_encoding_error(*tried.encoding_error);
    if (tried.removed) continue;
    const ArmGain& gain = choice.gains[i++];
    candidate.set_predicted_accuracy(gain.predicted.mean);
    candidate.set_deviation(gain.predicted.deviation);
    candidate.set_gain_per_second(gain.per_second);
    candidate.set_gain_deviation(gain.deviation);
  }
  result.decision.set_chosen(std::string(ArmName(spec.arms[result.arm])));
  return result;
}

}  // namespace thinwire
