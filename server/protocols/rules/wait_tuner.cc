#include "server/protocols/rules/wait_tuner.h"

#include <algorithm>
#include <cstdint>

#include "server/protocols/rules/wait_choice.h"

namespace thinwire {
namespace {

constexpr uint64_t kMostSteps = 100;  // between two choices
// An estimate of fewer rounds is too uncertain.
constexpr uint64_t kLeastNoiseRounds = 4;

std::optional<double> NoiseScale(const NoiseEstimate& noise) {
  return noise.rounds < kLeastNoiseRounds ? std::nullopt : noise.scale();
}

}  // namespace

std::optional<WaitTuner::NewRule> WaitTuner::Choose(const Rule& rule, Step frontier,
                                                    const StepTimes& times,
                                                    const NoiseEstimate& noise) {
  const bool applies = rule.fold == fold_ && rule.slack != kUnboundedSlack;
  if (!applies || rule.workers < 2) return std::nullopt;
  const StepSeconds seconds = times.Of(rule.workers);
  const auto is_known = [](const auto& of_worker) { return of_worker.size() >= kLeastTimes; };
  const double examples = times.ExamplesPerPush(rule.workers);
  if (!std::ranges::all_of(seconds, is_known) || examples == 0) return std::nullopt;
  next_ = frontier + std::clamp(frontier.value, uint64_t{kLeastTimes}, kMostSteps);
  Rule chosen = rule;
  std::optional<WaitChoice> choice;
  if (rule.fold == Fold::kRound) {
    choice = ChooseBackup(seconds, examples, NoiseScale(noise), rule.workers - rule.quorum);
    if (choice.has_value()) chosen.quorum = rule.workers - static_cast<uint32_t>(choice->value);
  } else {
    choice = ChooseSlack(seconds, rule.slack);
    if (choice.has_value()) chosen.slack = choice->value;
  }
  if (!choice.has_value()) return std::nullopt;
  return NewRule{chosen, choice->reason};
}

}  // namespace thinwire
