// WaitTuner chooses the rule of a job with `auto_backup` or `auto_slack` again and again: after 8
// steps, each time that the number of steps has doubled, and every 100 steps later. It knows no
// clock and no server, so that the lead and the laboratory use it alike. Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_TUNER_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_TUNER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "server/core/update/gradient_noise.h"
#include "server/shards/step_times.h"

namespace thinwire {

class WaitTuner {
 public:
  // The number of times of each worker without which there is no choice.
  static constexpr size_t kLeastTimes = 8;

  struct NewRule {
    Rule rule;
    std::string reason;  // the figures for the log
  };

  // FOLD: kRound chooses the number of backup workers, kPush the slack; nullopt: there is no
  // choice.
  explicit WaitTuner(std::optional<Fold> fold) : fold_(fold) {}

  // Ends the choice: Due returns false from now on.
  void Stop() { fold_.reset(); }
  bool enabled() const { return fold_.has_value(); }
  // Returns whether the rule must be chosen again when a shard's frontier is at FRONTIER.
  bool Due(Step frontier) const { return enabled() && frontier >= next_; }
  // Returns the rule that must replace RULE, the rule in force; nullopt if RULE stays: also while a
  // worker has fewer than kLeastTimes times, and if RULE has another fold or is async. The mode
  // stays, except that a rule of mode backup without backup workers is a sync rule.
  std::optional<NewRule> Choose(const Rule& rule, Step frontier, const StepTimes& times,
                                const NoiseEstimate& noise);

 private:
  std::optional<Fold> fold_;
  Step next_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_TUNER_H_
