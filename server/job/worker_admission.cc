#include "server/job/worker_admission.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "server/core/event.h"
#include "server/shards/convert.h"

namespace thinwire {

void WorkerAdmission::Join(const ServerCondition& server, const JoinCall& call) {
  absl::Status status = CheckJoin(server, call.request, call.may_rejoin);
  if (status.ok()) status = UseModel(call.request);
  if (!status.ok()) return call.done(status);
  const Incarnation incarnation{call.request.incarnation()};
  if (incarnation == Incarnation{}) return parts_.protocols.joins->Add(call);
  status = parts_.state.membership.Adopt(call.worker(), incarnation, parts_.clock.Now(),
                                         call.request.member());
  if (!status.ok()) return call.done(status);
  Admit(call, incarnation);
  // Another server may continue from a checkpoint that does not contain the process.
  if (parts_.protocols.admission == nullptr) return;
  parts_.protocols.admission->Announce(call.worker(), incarnation, parts_.clock.Now(),
                                       [](const auto&) {});
}

absl::Status WorkerAdmission::UseModel(const JoinRequest& request) {
  RETURN_IF_ERROR(parts_.model.MakeOrCompare(request));
  parts_.state.match.Keep(request);
  if (parts_.protocols.deals != nullptr) parts_.protocols.deals->AddTask(request);
  if (!parts_.stored.run().has_value()) {
    parts_.stored.RecordRun(parts_.state.identity.run, parts_.tokens.key(), request);
    parts_.checkpoints.SaveFirst();
  } else if (const auto examples = parts_.model.NewPlan(request)) {
    parts_.model.ApplyToAll(PlanEvent{*examples}, [] {});
  }
  parts_.counters.SetShardCount(parts_.model.Get()->hosts().size());
  return absl::OkStatus();
}

std::vector<ShardId> WorkerAdmission::OwnedShards(const JoinRequest& request) const {
  std::vector<ShardId> owned;
  if (request.owned_tensors().empty()) return owned;
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  for (const auto& host : model->hosts()) {
    // Tensors share no shards.
    const uint32_t tensor = model->partition().segments(host->id()).front().tensor;
    if (std::ranges::binary_search(request.owned_tensors(), tensor)) owned.push_back(host->id());
  }
  return owned;
}

void WorkerAdmission::Admit(const JoinCall& call, Incarnation incarnation) {
  const bool came_back = call.request.incarnation() != 0;
  parts_.protocols.start->Join(/*had_begun=*/came_back && call.request.had_begun());
  if (call.request.member() == 0) parts_.protocols.members->LogJoin(call.worker(), incarnation);
  if (parts_.protocols.relay != nullptr) parts_.protocols.relay->Joined(call.request);
  const auto joined = [this, worker = call.worker(), incarnation,
                       done = call.done](std::vector<Effects> effects) {
    // The reply is posted to the control thread, which runs this function. The reply is therefore
    // sent after StreamTable::Admit, and the worker cannot send frames earlier.
    parts_.control.Post([this, worker, incarnation, done, effects = std::move(effects)] {
      done(ReplyOf(worker, incarnation, effects));
    });
  };
  parts_.stored.RecordMember(call.worker(),
                             [this, event = JoinEvent{call.worker(), incarnation}, joined] {
                               parts_.model.Get()->SubmitToAll(event, joined);
                             });
  parts_.streams.Admit(call.worker(), incarnation, call.request.member(),
                       OwnedShards(call.request));
  if (parts_.protocols.sum_lead != nullptr) parts_.protocols.sum_lead->CallServers();
}

JoinReply WorkerAdmission::ReplyOf(WorkerId worker, Incarnation incarnation,
                                   const std::vector<Effects>& effects) {
  JoinReply reply;
  reply.set_incarnation(incarnation.value);
  reply.set_generation(parts_.state.identity.generation.value);
  reply.set_epoch(parts_.state.identity.epoch.value);
  reply.set_run(parts_.state.identity.run.value);
  bool by_round = effects.empty() && parts_.state.rule.rule().fold == Fold::kRound;
  for (const Effects& effect : effects) by_round = by_round || effect.join->by_round;
  reply.set_by_round(by_round);
  reply.set_lease_seconds(absl::ToDoubleSeconds(parts_.options.lease));
  reply.set_workers(parts_.options.rule.workers);
  const auto model = parts_.model.Get();
  for (size_t i = 0; i < effects.size(); ++i) {
    *reply.add_shards() = ShardStateOf(model->hosts()[i]->id(), *effects[i].join);
  }
  for (const auto& protocol : parts_.protocols.all) protocol->FillIn(worker, reply);
  return reply;
}

}  // namespace thinwire
