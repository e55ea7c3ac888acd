// WaitLead chooses the numbers of the mode again and again, at the lead of a job with `auto_backup`
// or `auto_slack`:
//
//   times of the first shard -> WaitTuner::Choose -> RuleLead::Adjust
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_LEAD_H_

#include "absl/time/time.h"
#include "common/spec/rule.h"
#include "common/time/executor.h"
#include "server/protocols/protocol.h"
#include "server/protocols/rules/rule_lead.h"
#include "server/protocols/rules/wait_tuner.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

class WaitLead final : public Protocol {
 public:
  // FOLD: as for WaitTuner. The other arguments must outlive this object.
  WaitLead(Fold fold, const JobState& state, const ModelSlot& model, RuleLead& rules,
           Executor& control)
      : state_(state), model_(model), rules_(rules), control_(control), tuner_(fold) {}

  // An operator has chosen a mode, which ends the choice.
  void End();
  void Tick(absl::Time now) override;

 private:
  const JobState& state_;
  const ModelSlot& model_;
  RuleLead& rules_;
  Executor& control_;
  WaitTuner tuner_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_LEAD_H_
