#include "server/edge/lead/precision_choice.h"

#include <string>
#include <vector>

namespace thinwire {

bool TrialsBeginAt(const AdaptiveSpec& spec, Step step, Step end) {
  return step + spec.speculate_steps < end;
}

Step NextDecision(const AdaptiveSpec& spec, Step step, Step end) {
  const Step next = step + spec.speculate_steps + spec.continue_steps;
  return TrialsBeginAt(spec, next, end) ? next : end;
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
