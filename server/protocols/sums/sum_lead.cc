#include "server/protocols/sums/sum_lead.h"

#include <glog/logging.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "common/model/partition.h"

namespace thinwire {

void SumLead::CallServers() {
  if (stopped()) return;
  if (!servers_.has_value()) {
    std::vector<ServerId> servers;
    for (uint32_t s = 0; s < shards().partition().server_count(); ++s) {
      if (!MembersOf(ServerId{s}).empty()) servers.push_back(ServerId{s});
    }
    if (servers.empty()) return;
    servers_.emplace(std::span<const ServerId>(servers));
    std::erase(servers, identity().server);
    others_ = std::move(servers);
  }
  SumRequest request;
  request.set_job(identity().job);
  request.set_run(identity().run.value);
  request.set_generation(identity().generation.value);
  if (const std::optional<RoundPart>& sum = servers_->newest()) {
    request.set_step(sum->step.value);
    SetSums(sum->sums, *request.mutable_sums());
  }
  for (const ServerId server : others_) {
    if (!called_.insert(server).second) continue;
    peers_->Call(server, request, [this, server](absl::StatusOr<SumReply> reply) {
      control().Post([this, server, reply = std::move(reply)] { OnReply(server, reply); });
    });
  }
}

void SumLead::OnReply(ServerId server, const absl::StatusOr<SumReply>& reply) {
  if (stopped()) return;
  absl::StatusOr<NumberedSums> sums =
      reply.ok() ? SumsOf(reply->sums()) : absl::StatusOr<NumberedSums>(reply.status());
  if (sums.ok()) return Add(server, {Step{reply->step()}, *std::move(sums)});
  called_.erase(server);
  // A round may take longer than a call.
  if (absl::IsDeadlineExceeded(sums.status())) return CallServers();
  if (!waiting().has_value()) return;
  LOG_EVERY_T(WARNING, 10) << (clip_norm() > 0 ? "clip_norm" : "trust ratios") << ": step "
                           << *waiting() << " waits for " << peers_->NameOf(server) << ": "
                           << sums.status().message();
}

void SumLead::CountClipping(const RoundPart& sum) {
  const auto model = sum.sums.find(0);
  if (model == sum.sums.end() || model->second.update == 0) return;
  const double squared_norm = model->second.update;
  counters_.Update([&](StatusReply& counts) {
    const bool clipped = ClipFactor(clip_norm(), squared_norm) < 1;
    counts.set_gradient_norm(std::sqrt(squared_norm));
    counts.set_clipped_updates(counts.clipped_updates() + (clipped ? 1 : 0));
  });
}

void SumLead::Add(ServerId server, const RoundPart& part) {
  if (!servers_.has_value()) CallServers();
  const std::optional<RoundPart> sum = servers_->Add(server.value, part);
  if (!sum.has_value()) return;
  if (clip_norm() > 0) CountClipping(*sum);
  called_.clear();
  CallServers();
  Close(*sum);
}

void SumLead::Tick(absl::Time now) {
  if (servers_.has_value()) CallServers();
  ShardSums::Tick(now);
}

}  // namespace thinwire
