#include "server/protocols/precision/precision_lead.h"

#include "common/base/status_macros.h"

namespace thinwire {

absl::Status PrecisionLead::Begin() {
  RETURN_IF_ERROR(trials_.Start(state_.identity.run, state_.recovered));
  checkpoints_.Plan(trials_.snapshot());
  return absl::OkStatus();
}

void PrecisionLead::Tick(absl::Time /*now*/) { Adapt(); }

void PrecisionLead::Heard(const HeartbeatRequest& request) {
  const Member& member = state_.membership.of(WorkerId{request.worker()});
  if (state_.stopping || member.incarnation != Incarnation{request.incarnation()}) return;
  if (const absl::Status added = trials_.Add(request); !added.ok()) durable_.failed(added);
  Adapt();
}

void PrecisionLead::Adapt() {
  if (!shards_.has_model() || state_.stopping) return;
  const auto returns_to =
      trials_.Update(shards_.frontier(), checkpoints_.kept(), checkpoints_.announced());
  if (!returns_to.ok()) return durable_.failed(returns_to.status());
  checkpoints_.Plan(trials_.snapshot());
  if (returns_to->has_value()) checkpoints_.ReturnTo(**returns_to);
}

void PrecisionLead::FillIn(WorkerId /*worker*/, JoinReply& reply) {
  trials_.Begin(shards_.partition());
  trials_.FillIn(reply);
}

}  // namespace thinwire
