#include "server/protocols/clipping/clipper.h"

#include <glog/logging.h>

#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"

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

ClipReply ReplyOf(const FullRound& part) {
  ClipReply reply;
  reply.set_step(part.step.value);
  reply.set_squared_norm(part.squared_norm);
  return reply;
}

}  // namespace

void Clipper::Applied(ShardId shard, const Effects& effects) {
  const std::optional<FullRound> part = PartOf(effects);
  if (!part.has_value()) return;
  absl::MutexLock lock(&mu_);
  if (!shards_.has_value()) {
    const std::vector<ShardId> own = parts_.partition().ShardsOf(parts_.identity.server);
    shards_.emplace(std::span<const ShardId>(own));
  }
  if (effects.full_round.has_value()) newest_full_ = effects.full_round->step;
  const std::optional<FullRound> sum = shards_->Add(shard.value, *part);
  if (!sum.has_value()) return;
  // Posted with the lock held, so that the reports keep their order.
  control_.Post([this, sum = *sum, full = newest_full_ == sum->step] { Report(sum, full); });
}

void Clipper::Report(const FullRound& part, bool full) {
  if (stopped_) return;
  part_ = part;
  if (full) waiting_ = part.step;
  if (parts_.identity.leads()) return Add(parts_.identity.server, part);
  ReplyIfDue();
}

void Clipper::ReplyIfDue() {
  if (!reply_.has_value() || !part_.has_value() || part_->step <= reply_->after) return;
  std::exchange(reply_, std::nullopt)->done(ReplyOf(*part_));
}

void Clipper::Clip(const ClipRequest& request,
                   std::function<void(absl::StatusOr<ClipReply>)> done) {
  if (reply_.has_value()) {
    std::exchange(reply_, std::nullopt)->done(absl::AbortedError("the lead has called again"));
  }
  HeldReply& held = reply_.emplace(HeldReply{std::nullopt, std::move(done)});
  if (request.has_step()) {
    held.after = Step{request.step()};
    Close({Step{request.step()}, request.squared_norm()});
  }
  ReplyIfDue();
}

void Clipper::CallServers() {
  if (stopped_) return;
  if (!servers_.has_value()) {
    others_ = ServersOf(parts_.partition());
    servers_.emplace(std::span<const ServerId>(others_));
    std::erase(others_, parts_.identity.server);
  }
  ClipRequest request;
  request.set_job(parts_.identity.job);
  request.set_run(parts_.identity.run.value);
  request.set_generation(parts_.identity.generation.value);
  if (const std::optional<FullRound>& sum = servers_->newest()) {
    request.set_step(sum->step.value);
    request.set_squared_norm(sum->squared_norm);
  }
  for (const ServerId server : others_) {
    if (!called_.insert(server).second) continue;
    parts_.peers->Clip(server, request, [this, server](absl::StatusOr<ClipReply> reply) {
      control_.Post([this, server, reply = std::move(reply)] { OnReply(server, reply); });
    });
  }
}

void Clipper::OnReply(ServerId server, const absl::StatusOr<ClipReply>& reply) {
  if (stopped_) return;
  absl::Status status = reply.status();
  if (status.ok() && !(std::isfinite(reply->squared_norm()) && reply->squared_norm() >= 0)) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "squared_norm: out of range (expected at least 0, got ", reply->squared_norm(), ")"));
  }
  if (status.ok()) return Add(server, {Step{reply->step()}, reply->squared_norm()});
  called_.erase(server);
  // A round may take longer than a call.
  if (absl::IsDeadlineExceeded(status)) return CallServers();
  if (!waiting_.has_value()) return;
  LOG_EVERY_T(WARNING, 10) << "clip_norm: step " << *waiting_ << " waits for "
                           << parts_.peers->NameOf(server) << ": " << status.message();
}

void Clipper::Add(ServerId server, const FullRound& part) {
  if (!servers_.has_value()) CallServers();
  const std::optional<FullRound> sum = servers_->Add(server.value, part);
  if (!sum.has_value()) return;
  if (sum->squared_norm > 0) {
    const bool clipped = ClipFactor(limit_, sum->squared_norm) < 1;
    parts_.counters.Update([&](StatusReply& counts) {
      counts.set_gradient_norm(std::sqrt(sum->squared_norm));
      counts.set_clipped_updates(counts.clipped_updates() + (clipped ? 1 : 0));
    });
  }
  called_.clear();
  CallServers();
  Close(*sum);
}

void Clipper::Close(const FullRound& sum) {
  if (waiting_ != sum.step) return;
  const ClipEvent event = {sum.step, ClipFactor(limit_, sum.squared_norm)};
  parts_.apply(event, [this, step = sum.step] {
    control_.Post([this, step] {
      if (waiting_ == step) waiting_.reset();
      EndCloses(absl::InfinitePast());
    });
  });
}

void Clipper::WhenClosed(absl::Time now, std::function<void()> then) {
  // A worker repeats its Leave, which does not begin the wait again.
  if (waiting_.has_value() && !give_up_at_.has_value()) give_up_at_ = now + kPatience;
  closes_.push_back(std::move(then));
  EndCloses(now);
}

void Clipper::EndCloses(absl::Time now) {
  if (!waiting_.has_value()) give_up_at_.reset();
  if (waiting_.has_value() && !stopped_ && give_up_at_ > now) return;
  for (const std::function<void()>& then : std::exchange(closes_, {})) then();
}

void Clipper::Tick(absl::Time now) {
  if (servers_.has_value()) CallServers();
  EndCloses(now);
}

void Clipper::Stop(const absl::Status& status) {
  stopped_ = true;
  if (reply_.has_value()) std::exchange(reply_, std::nullopt)->done(status);
  EndCloses(absl::InfinitePast());
}

}  // namespace thinwire
