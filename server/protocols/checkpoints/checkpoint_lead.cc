#include "server/protocols/checkpoints/checkpoint_lead.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/durable/retention.h"

namespace thinwire {
namespace {

constexpr absl::Duration kFollowInterval = absl::Milliseconds(500);
constexpr absl::Duration kMeasureInterval = absl::Milliseconds(500);
// A step is announced this long before the frontier reaches it, so that all servers and workers
// hear of it in time.
constexpr double kSecondsAhead = 2;
constexpr uint64_t kLeastStepsAhead = 4;

ServerCheckpoints CheckpointsOf(const FollowReply& reply) {
  ServerCheckpoints checkpoints = {.run = RunId{reply.run()},
                                   .generation = Generation{reply.generation()},
                                   .awaits_rollback = reply.awaits_rollback(),
                                   .steps = {},
                                   .frontier = Step{reply.frontier()},
                                   .writing = reply.writing(),
                                   .tested = {}};
  for (const uint64_t step : reply.checkpoint_steps()) checkpoints.steps.push_back(Step{step});
  return checkpoints;
}

}  // namespace

CheckpointLead::CheckpointLead(std::string job, uint32_t server_count, Peers* peers,
                               Executor& control, LeadServer& server, bool settled,
                               RetentionSpec retention)
    : job_(std::move(job)),
      peers_(peers),
      control_(control),
      server_(server),
      retention_(retention),
      servers_(server_count),
      settled_(settled) {}

void CheckpointLead::Tick(absl::Time now, absl::Duration interval) {
  if (ended_) return;
  if (settled_ && plans_) {
    AnnouncePlanned();
  } else if (settled_ && !wanted_.has_value()) {
    Announce(now, interval);
  }
  const bool due = ask_now_ || delays_workers() || now - last_ask_ >= kFollowInterval;
  if (!due || pending_count_ > 0) return;
  last_ask_ = now;
  ask_now_ = false;
  Ask();
}

void CheckpointLead::Ask() {
  const ServerCheckpoints own = server_.Checkpoints();
  FollowRequest request;
  request.set_job(job_);
  request.set_run(own.run.value);
  request.set_generation(own.generation.value);
  if (announced_.has_value()) request.set_checkpoint_step(announced_->value);
  if (kept_.has_value()) {
    request.set_kept_step(kept_->value);
    for (const Step step : kept_steps()) request.add_kept_steps(step.value);
  }
  if (wanted_.has_value()) {
    wanted_->asked = true;
    wanted_->is_kept = kept_.has_value();
  }
  pending_count_ = servers_.size() - 1;
  if (pending_count_ == 0) return Decide();
  for (size_t s = 1; s < servers_.size(); ++s) {
    servers_[s].reset();
    peers_->Call(ServerId{static_cast<uint32_t>(s)}, request,
                 [this, s](absl::StatusOr<FollowReply> reply) {
                   control_.Post([this, s, reply = std::move(reply)] { OnReply(s, reply); });
                 });
  }
}

void CheckpointLead::OnReply(size_t server, const absl::StatusOr<FollowReply>& reply) {
  --pending_count_;
  if (ended_) return;
  if (reply.ok()) {
    servers_[server] = CheckpointsOf(*reply);
    frontier_ = std::max(frontier_, servers_[server]->frontier);
  } else if (absl::IsFailedPrecondition(reply.status())) {
    // The server follows a newer lead, or belongs to another job.
    return Fail(absl::FailedPreconditionError(absl::StrCat(
        peers_->NameOf(ServerId{static_cast<uint32_t>(server)}), ": ", reply.status().message())));
  }
  if (pending_count_ == 0) Decide();
}

void CheckpointLead::Decide() {
  servers_[0] = server_.Checkpoints();
  const absl::StatusOr<std::optional<RollbackOrder>> plan = PlanRollback(servers_, settled_);
  if (!plan.ok()) return Fail(plan.status());
  if (plan->has_value()) return Order(**plan);
  if (wanted_.has_value() && wanted_->asked) DecideReturn();
  if (ended_) return;
  if (std::ranges::any_of(servers_, [](const auto& server) { return !server.has_value(); })) return;
  settled_ = all_answered_ = true;
  std::vector<Step> common = CommonSteps(servers_);
  if (common.empty()) return;
  kept_ = common.back();
  common_ = std::move(common);
}

void CheckpointLead::Return(Step step, Returned done) {
  if (ended_ || !settled_ || wanted_.has_value()) {
    return done(absl::UnavailableError("the servers already go back to a checkpoint"));
  }
  wanted_ = {.step = step, .done = std::move(done)};
  ask_now_ = true;
}

void CheckpointLead::DecideReturn() {
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].has_value()) continue;
    return EndReturn(absl::UnavailableError(absl::StrCat(
        peers_->NameOf(ServerId{static_cast<uint32_t>(s)}), ": does not answer server 0")));
  }
  const Step step = wanted_->step;
  const std::vector<Step> common = CommonSteps(servers_);
  if (std::ranges::count(common, step) == 0) {
    const auto append = [](std::string* out, Step each) { absl::StrAppend(out, each.value); };
    return EndReturn(absl::InvalidArgumentError(absl::StrCat(
        "step: not a step of which all servers have a checkpoint (expected ",
        common.empty() ? "none, there is no such step" : absl::StrJoin(common, " or ", append),
        ", got ", step.value, ")")));
  }
  // The end of a write that began before the server knew the step may remove its checkpoint.
  const bool writes =
      std::ranges::any_of(servers_, [](const auto& server) { return server->writing; });
  if (writes || !wanted_->is_kept) return;
  const Generation generation = servers_[0]->generation + 1;
  LOG(INFO) << "an operator sends all servers back to step " << step;
  ended_ = true;
  server_.RollBack({.servers = {ServerId{0}}, .generation = generation, .step = step},
                   std::exchange(wanted_, std::nullopt)->done);
}

void CheckpointLead::EndReturn(const absl::Status& status) {
  std::exchange(wanted_, std::nullopt)->done(status);
}

std::vector<Step> CheckpointLead::kept_steps() const {
  std::vector<Step> steps = FirstSteps(common_, retention_.every);
  // The best of those that all servers have: a better one that a full disk refuses takes no place.
  for (const Step best : BestSteps(servers_[0]->tested, common_, retention_.best_count)) {
    steps.push_back(best);
  }
  steps.push_back(*kept_);
  if (wanted_.has_value()) steps.push_back(wanted_->step);
  std::ranges::sort(steps);
  const auto repeated = std::ranges::unique(steps);
  steps.erase(repeated.begin(), repeated.end());
  return steps;
}

void CheckpointLead::Order(const RollbackOrder& order) {
  settled_ = false;
  if (wanted_.has_value()) {
    EndReturn(
        absl::UnavailableError("the servers go back to another checkpoint, because a server "
                               "was started again"));
  }
  if (order.servers.front() == ServerId{0}) {
    ended_ = true;
    return server_.RollBack(order, [](const absl::Status&) {});
  }
  RollbackRequest request;
  request.set_job(job_);
  request.set_run(servers_[0]->run.value);
  request.set_generation(order.generation.value);
  request.set_step(order.step.value);
  pending_count_ = order.servers.size();
  for (const ServerId server : order.servers) {
    LOG(INFO) << "rollback: " << peers_->NameOf(server) << " goes back to step " << order.step
              << " under generation " << order.generation;
    peers_->Call(server, request, [this, server](const absl::StatusOr<RollbackReply>& reply) {
      control_.Post([this, server, status = reply.status()] {
        --pending_count_;
        if (!status.ok()) {
          LOG(WARNING) << "rollback: " << peers_->NameOf(server) << ": " << status.message();
        }
      });
    });
  }
}

void CheckpointLead::Measure(absl::Time now) {
  frontier_ = std::max(frontier_, server_.Checkpoints().frontier);
  if (measured_at_ == absl::InfinitePast()) {
    measured_at_ = now;
    measured_ = frontier_;
  } else if (const absl::Duration time = now - measured_at_; time >= kMeasureInterval) {
    steps_per_second_ = static_cast<double>(frontier_ - measured_) / absl::ToDoubleSeconds(time);
    measured_at_ = now;
    measured_ = frontier_;
  }
}

Step CheckpointLead::StepAhead() const {
  const auto ahead = static_cast<uint64_t>(std::ceil(kSecondsAhead * steps_per_second_));
  return frontier_ + std::max(kLeastStepsAhead, ahead);
}

absl::StatusOr<Step> CheckpointLead::AnnounceNow(absl::Time now, bool live) {
  if (ended_ || !settled_ || wanted_.has_value()) {
    return absl::UnavailableError("the servers go back to a checkpoint");
  }
  // As in Announce: the servers must know the step to keep.
  if (!all_answered_) return absl::UnavailableError("a server has not answered server 0 yet");
  Measure(now);
  if (!live) return frontier_;
  if (frontier_ < announced_.value_or(Step{})) return *announced_;
  announced_ = StepAhead();
  last_announcement_ = now;
  ask_now_ = true;
  return *announced_;
}

void CheckpointLead::Announce(absl::Time now, absl::Duration interval) {
  Measure(now);
  // The step of the first checkpoint of a run is 0, without an announcement.
  if (!last_announcement_.has_value()) last_announcement_ = now;
  const absl::Duration waited = now - *last_announcement_;
  if (waited < interval || frontier_ < announced_.value_or(Step{})) return;
  // Before the servers know the step to keep, they could remove the checkpoint that all of them
  // have.
  if (!all_answered_) return;
  // A server may be slow or may have heard of the step too late; it gets another interval.
  if (!AllHaveAnnounced() && waited < 2 * interval) return;
  announced_ = StepAhead();
  last_announcement_ = now;
  ask_now_ = true;
}

void CheckpointLead::AnnouncePlanned() {
  frontier_ = std::max(frontier_, server_.Checkpoints().frontier);
  if (!planned_.has_value() || planned_ <= announced_.value_or(Step{})) return;
  // As in Announce: the servers must know the step to keep.
  if (!all_answered_ || frontier_ < announced_.value_or(Step{})) return;
  announced_ = planned_;
  ask_now_ = true;
}

bool CheckpointLead::AllHaveAnnounced() const {
  const Step announced = announced_.value_or(Step{});
  return std::ranges::all_of(servers_, [announced](const auto& server) {
    return server.has_value() && !server->steps.empty() && server->steps.back() >= announced;
  });
}

void CheckpointLead::Fail(const absl::Status& status) {
  ended_ = true;
  server_.Fail(status);
}

}  // namespace thinwire
