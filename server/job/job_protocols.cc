#include "server/job/job_protocols.h"

#include <utility>

#include "server/protocols/deals/growth_lead.h"
#include "server/protocols/membership/progress_lead.h"

namespace thinwire {
namespace {

// Appends PROTOCOL to ALL and returns it.
template <typename T>
T* Add(std::vector<std::unique_ptr<Protocol>>& all, std::unique_ptr<T> protocol) {
  T* const added = protocol.get();
  all.push_back(std::move(protocol));
  return added;
}

void AddLead(const ProtocolParts& parts, JoinQueue::Admit admit, JobProtocols& to) {
  const auto& [options, state, stored, checkpoints, model, counters, tokens, peers, clock,
               control] = parts;
  auto admission = std::make_unique<AdmissionLead>(state, tokens, peers, stored, control);
  auto joins = std::make_unique<JoinQueue>(state, *admission, model, clock, std::move(admit));
  to.member_lead =
      Add(to.all, std::make_unique<MembershipLead>(state, *to.start, tokens, model, stored));
  auto growth = options.growth.has_value()
                    ? std::make_unique<GrowthLead>(*options.growth, state.dealer)
                    : nullptr;
  to.deals = Add(to.all, std::make_unique<DealLead>(state, *joins, checkpoints, stored, model,
                                                    clock, control, std::move(growth)));
  to.rules = Add(to.all, std::make_unique<RuleLead>(state, options.server_count, peers, model,
                                                    stored, clock, control));
  if (options.auto_rule) {
    to.waits = Add(to.all,
                   std::make_unique<WaitLead>(options.rule.fold, state, model, *to.rules, control));
  }
  if (options.adaptive.has_value() && options.durable.has_value()) {
    to.precision = Add(to.all, std::make_unique<PrecisionLead>(*options.adaptive, *options.durable,
                                                               state, checkpoints, model));
  }
  to.admission = Add(to.all, std::move(admission));
  if (MayNeedSums(options)) {
    to.sum_lead = Add(to.all, std::make_unique<SumLead>(options.clip_norm, state.identity, model,
                                                        control, peers, counters));
    to.shard_sums = to.sum_lead;
  }
  if (options.relay != nullptr) {
    to.relay =
        Add(to.all, std::make_unique<RelayLead>(state.membership, model, control, *options.relay));
  }
  to.joins = Add(to.all, std::move(joins));
  to.numbers = Add(to.all, std::make_unique<NumberLead>(state, options.start_timeout));
  Add(to.all, std::make_unique<ProgressLead>());
}

void AddFollower(const ProtocolParts& parts, JobProtocols& to) {
  to.rule_follower =
      Add(to.all, std::make_unique<RuleFollower>(parts.state, parts.model, parts.control));
  to.admission_follower = Add(to.all, std::make_unique<AdmissionFollower>(
                                          parts.state, *to.start, parts.tokens, parts.stored));
  if (MayNeedSums(parts.options)) {
    to.sum_follower =
        Add(to.all, std::make_unique<SumFollower>(parts.options.clip_norm, parts.state.identity,
                                                  parts.model, parts.control));
    to.shard_sums = to.sum_follower;
  }
}

}  // namespace

JobProtocols MakeProtocols(const ProtocolParts& parts, JoinQueue::Admit admit) {
  JobProtocols protocols;
  auto start = std::make_unique<TrainingStart>(parts.options.lease, parts.options.start_timeout,
                                               parts.state, parts.model, parts.clock);
  protocols.start = start.get();
  protocols.members =
      Add(protocols.all, std::make_unique<MemberEvents>(parts.options.lease, parts.state,
                                                        parts.model, parts.counters, parts.clock));
  if (parts.state.identity.leads()) {
    AddLead(parts, std::move(admit), protocols);
  } else {
    AddFollower(parts, protocols);
  }
  // Last, because a worker that joins in the same tick counts.
  Add(protocols.all, std::move(start));
  return protocols;
}

}  // namespace thinwire
