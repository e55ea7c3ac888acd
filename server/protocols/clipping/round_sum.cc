#include "server/protocols/clipping/round_sum.h"

#include <algorithm>
#include <cmath>

namespace thinwire {

double ClipFactor(double limit, double squared_norm) {
  const double norm = std::sqrt(squared_norm);
  return norm > limit ? limit / norm : 1;
}

std::optional<FullRound> PartOf(const Effects& effects) {
  if (effects.full_round.has_value()) return effects.full_round;
  // A closed round with gradients was full before. One without gradients has the norm 0.
  if (effects.rounds.empty() || !effects.rounds.back().accepted.empty()) return std::nullopt;
  return FullRound{effects.rounds.back().step, 0};
}

std::optional<FullRound> RoundSum::Add(uint32_t member, const FullRound& part) {
  std::optional<FullRound>& own = parts_.at(member);
  if (!own.has_value() || part.step > own->step) own = part;
  const auto waits = [this](const auto& entry) {
    const std::optional<FullRound>& newest = entry.second;
    return !newest.has_value() || (newest_.has_value() && newest->step <= newest_->step);
  };
  if (std::ranges::any_of(parts_, waits)) return std::nullopt;
  FullRound sum = {.step = part.step};
  for (const auto& [number, newest] : parts_) sum.step = std::min(sum.step, newest->step);
  for (const auto& [number, newest] : parts_) {
    if (newest->step == sum.step) sum.squared_norm += newest->squared_norm;
  }
  newest_ = sum;
  return newest_;
}

}  // namespace thinwire
