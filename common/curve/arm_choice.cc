#include "common/curve/arm_choice.h"

#include <algorithm>
#include <cmath>

namespace thinwire {

ArmChoice ChooseArm(std::span<const Trial> trials, const TrialStart& start,
                    std::optional<size_t> current) {
  ArmChoice choice;
  for (const Trial& trial : trials) {
    const double seconds = trial.seconds_per_step * (start.next_decision - start.step);
    const CurvePrediction predicted = PredictCurve(trial.curve, start.next_decision);
    choice.gains.push_back({.predicted = predicted,
                            .per_second = (predicted.mean - start.accuracy) / seconds,
                            .deviation = predicted.deviation / seconds});
  }
  const auto best = std::ranges::max_element(choice.gains, {}, &ArmGain::per_second);
  choice.chosen = static_cast<size_t>(best - choice.gains.begin());
  if (!current.has_value()) return choice;
  const ArmGain& kept = choice.gains[*current];
  // std::hypot would need glibc 2.35, which the Python wheel must not (deploy/wheel.sh).
  const double deviation =
      std::sqrt(best->deviation * best->deviation + kept.deviation * kept.deviation);
  if (best->per_second - kept.per_second <= deviation) {
    choice.chosen = *current;
  }
  return choice;
}

}  // namespace thinwire
