#include "server/protocols/rules/wait_lead.h"

#include <glog/logging.h>

#include <memory>

#include "server/core/shard.h"

namespace thinwire {

void WaitLead::End() {
  if (!tuner_.enabled()) return;
  LOG(INFO) << "the mode of the operator ends auto_backup and auto_slack in this process";
  tuner_.Stop();
}

void WaitLead::Tick(absl::Time /*now*/) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || model->hosts().empty()) return;
  ShardHost& first = *model->hosts().front();
  if (!tuner_.Due(first.frontier())) return;
  first.Post([this, model, &first](Shard& shard) {
    const StepTimes& times = first.MeasureSteps();
    if (shard.next_rule().has_value()) return;
    control_.Post(
        [this, times, rule = shard.rule(), frontier = shard.frontier(), noise = shard.noise()] {
          if (state_.stopping || !tuner_.Due(frontier)) return;
          const auto chosen = tuner_.Choose(rule, frontier, times, noise);
          if (chosen.has_value()) rules_.Adjust(rule, chosen->rule, chosen->reason);
        });
  });
}

}  // namespace thinwire
