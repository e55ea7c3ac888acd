#include "server/edge/job_checkpoints.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/durable/checkpoint.h"

namespace thinwire {

void JobCheckpoints::Start(bool recovered) {
  const DurableOptions& durable = *options_.durable;
  checkpointer_ = std::make_unique<Checkpointer>(
      *durable.files,
      Checkpointer::Options{.folder = durable.folder,
                            .interval = durable.checkpoint_interval,
                            .failure_interval = durable.failure_interval,
                            .keep_log = durable.keep_log,
                            .tracer = options_.tracer},
      parts_.journal, parts_.clock, post_, [this] { return parts_.stored.Head(); });
  if (!aligned()) return;
  awaits_rollback_ = recovered && durable.awaits_rollback;
  if (!parts_.identity.leads()) return;
  lead_ = std::make_unique<CheckpointLead>(
      parts_.identity.job, options_.server_count, parts_.peers, post_,
      CheckpointLead::Server{
          .checkpoints = [this] { return OwnCheckpoints(); },
          .roll_back =
              [this](const RollbackOrder& order) {
                GoBack(order.step, order.generation, [](const absl::Status&) {});
              },
          .fail = [this](const absl::Status& status) { options_.durable->failed(status); }},
      /*settled=*/!recovered);
}

void JobCheckpoints::Stop() {
  if (checkpointer_ != nullptr) checkpointer_->Stop();
}

absl::Status JobCheckpoints::CheckAgreed() const {
  if (awaits_rollback_) {
    return absl::UnavailableError(absl::StrCat("server ", parts_.identity.server.value,
                                               " waits for ",
                                               parts_.identity.leads() ? "all servers" : "server 0",
                                               " to choose the checkpoint to continue from"));
  }
  if (lead_ != nullptr && !lead_->settled()) {
    return absl::UnavailableError(
        "server 0 waits until all servers continue from the same checkpoint");
  }
  return absl::OkStatus();
}

std::optional<Step> JobCheckpoints::announced() const {
  return lead_ == nullptr ? std::nullopt : lead_->announced();
}

void JobCheckpoints::Tick(absl::Time now) {
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  if (checkpointer_ == nullptr || model == nullptr) return;
  if (!aligned()) return checkpointer_->StartIfDue(now, *model);
  if (lead_ == nullptr) return;
  lead_->Tick(now, checkpointer_->interval());
  if (lead_->kept().has_value()) checkpointer_->Keep(*lead_->kept());
  if (lead_->announced().has_value()) SaveAt(*lead_->announced());
}

void JobCheckpoints::SaveFirst() {
  if (keeps_only_checkpoints()) SaveAt(Step{});
}

void JobCheckpoints::SaveLast() {
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  if (checkpointer_ == nullptr || model == nullptr || awaits_rollback_) return;
  checkpointer_->StartLast(*model);
}

void JobCheckpoints::SaveAt(Step step) {
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  if (model == nullptr || (newest_step_.has_value() && step <= *newest_step_)) return;
  if (checkpointer_->Start(*model, step)) newest_step_ = step;
}

absl::Status JobCheckpoints::CheckFollower(const std::string& job) const {
  RETURN_IF_ERROR(parts_.identity.CheckJob(job));
  RETURN_IF_ERROR(parts_.identity.CheckFollows());
  if (aligned()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("server ", parts_.identity.server.value,
                   ": makes no checkpoints together with the other servers (expected durability: "
                   "checkpoint and mode sync or backup)"));
}

absl::StatusOr<FollowReply> JobCheckpoints::Follow(const FollowRequest& request) {
  RETURN_IF_ERROR(CheckFollower(request.job()));
  const JobIdentity& identity = parts_.identity;
  const bool same_run = request.run() == identity.run.value;
  if (same_run && request.generation() < identity.generation.value) {
    return absl::FailedPreconditionError(
        absl::StrCat("generation: an older one (expected at least ", identity.generation.value,
                     ", got ", request.generation(), ")"));
  }
  const bool same = same_run && request.generation() == identity.generation.value;
  if (same && !awaits_rollback_) {
    if (request.has_kept_step()) checkpointer_->Keep(Step{request.kept_step()});
    if (request.has_checkpoint_step()) SaveAt(Step{request.checkpoint_step()});
  }
  const ServerCheckpoints own = OwnCheckpoints();
  FollowReply reply;
  reply.set_epoch(identity.epoch.value);
  reply.set_run(own.run.value);
  reply.set_generation(own.generation.value);
  reply.set_awaits_rollback(own.awaits_rollback);
  for (const Step step : own.steps) reply.add_checkpoint_steps(step.value);
  reply.set_frontier(own.frontier.value);
  reply.set_writing(own.writing);
  return reply;
}

absl::Status JobCheckpoints::CheckRollback(const RollbackRequest& request) const {
  RETURN_IF_ERROR(CheckFollower(request.job()));
  RETURN_IF_ERROR(parts_.identity.CheckRun("server 0", RunId{request.run()}));
  const uint64_t generation = parts_.identity.generation.value;
  if (request.generation() <= generation) {
    return absl::FailedPreconditionError(
        absl::StrCat("generation: not a newer one (expected above ", generation, ", got ",
                     request.generation(), ")"));
  }
  if (std::ranges::count(checkpointer_->steps(), Step{request.step()}) > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "server ", parts_.identity.server.value, ": has no checkpoint of step ", request.step()));
}

void JobCheckpoints::Rollback(const RollbackRequest& request,
                              std::function<void(absl::StatusOr<RollbackReply>)> done) {
  if (const absl::Status status = CheckRollback(request); !status.ok()) return done(status);
  GoBack(Step{request.step()}, Generation{request.generation()},
         [done = std::move(done)](const absl::Status& result) {
           if (!result.ok()) return done(result);
           done(RollbackReply());
         });
}

void JobCheckpoints::GoBack(Step step, Generation generation,
                            std::function<void(const absl::Status&)> done) {
  LOG(INFO) << "rollback: going back to step " << step << " under generation " << generation;
  goes_back_ = true;
  checkpointer_->RollBack(step, generation, [this, done = std::move(done)](const auto& status) {
    done(status);
    if (status.ok()) return options_.durable->restart();
    options_.durable->failed(status);
  });
}

void JobCheckpoints::ReturnTo(Step step) {
  // The other servers then have a lower generation than the lead and follow it (rollback_plan.h).
  GoBack(step, parts_.identity.generation + 1, [](const absl::Status&) {});
}

ServerCheckpoints JobCheckpoints::OwnCheckpoints() const {
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  return {.run = parts_.identity.run,
          .generation = parts_.identity.generation,
          .awaits_rollback = awaits_rollback_,
          .steps = checkpointer_->steps(),
          .frontier = model == nullptr ? Step{} : model->frontier(),
          .writing = checkpointer_->writing()};
}

void JobCheckpoints::FillIn(StatusReply& reply) const {
  reply.set_awaits_rollback(awaits_rollback_);
  if (checkpointer_ != nullptr) checkpointer_->FillIn(reply);
}

}  // namespace thinwire
