#include "server/protocols/clipping/clip_lead.h"

#include <glog/logging.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/model/partition.h"

namespace thinwire {
namespace {

// Returns the servers with a shard of the model.
std::vector<ServerId> ServersOf(const Partition& partition) {
  std::vector<ServerId> servers;
  for (uint32_t s = 0; s < partition.server_count(); ++s) {
    if (!partition.ShardsOf(ServerId{s}).empty()) servers.push_back(ServerId{s});
  }
  return servers;
}

}  // namespace

void ClipLead::CallServers() {
  if (stopped()) return;
  if (!servers_.has_value()) {
    others_ = ServersOf(shards().partition());
    servers_.emplace(std::span<const ServerId>(others_));
    std::erase(others_, identity().server);
  }
  ClipRequest request;
  request.set_job(identity().job);
  request.set_run(identity().run.value);
  request.set_generation(identity().generation.value);
  if (const std::optional<FullRound>& sum = servers_->newest()) {
    request.set_step(sum->step.value);
    request.set_squared_norm(sum->squared_norm);
  }
  for (const ServerId server : others_) {
    if (!called_.insert(server).second) continue;
    peers_->Call(server, request, [this, server](absl::StatusOr<ClipReply> reply) {
      control().Post([this, server, reply = std::move(reply)] { OnReply(server, reply); });
    });
  }
}

void ClipLead::OnReply(ServerId server, const absl::StatusOr<ClipReply>& reply) {
  if (stopped()) return;
  absl::Status status = reply.status();
  if (status.ok() && !(std::isfinite(reply->squared_norm()) && reply->squared_norm() >= 0)) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "squared_norm: out of range (expected at least 0, got ", reply->squared_norm(), ")"));
  }
  if (status.ok()) return Add(server, {Step{reply->step()}, reply->squared_norm()});
  called_.erase(server);
  // A round may take longer than a call.
  if (absl::IsDeadlineExceeded(status)) return CallServers();
  if (!waiting().has_value()) return;
  LOG_EVERY_T(WARNING, 10) << "clip_norm: step " << *waiting() << " waits for "
                           << peers_->NameOf(server) << ": " << status.message();
}

void ClipLead::Add(ServerId server, const FullRound& part) {
  if (!servers_.has_value()) CallServers();
  const std::optional<FullRound> sum = servers_->Add(server.value, part);
  if (!sum.has_value()) return;
  if (sum->squared_norm > 0) {
    const bool clipped = ClipFactor(limit(), sum->squared_norm) < 1;
    counters_.Update([&](StatusReply& counts) {
      counts.set_gradient_norm(std::sqrt(sum->squared_norm));
      counts.set_clipped_updates(counts.clipped_updates() + (clipped ? 1 : 0));
    });
  }
  called_.clear();
  CallServers();
  Close(*sum);
}

void ClipLead::Tick(absl::Time now) {
  if (servers_.has_value()) CallServers();
  Clipper::Tick(now);
}

}  // namespace thinwire
