#include "server/protocols/checkpoints/job_checkpoints.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/durable/checkpoint.h"
#include "server/durable/test_result.h"

namespace thinwire {
namespace {

constexpr double kShortestLimit = 0.1;
constexpr double kLongestLimit = 86400;
// A server tries to make a checkpoint after a test for this time.
constexpr double kTestSeconds = 60;

SaveCheckpointReply ReplyOf(const SavedSteps& steps) {
  SaveCheckpointReply reply;
  if (steps.least.has_value()) reply.set_least_step(steps.least->value);
  if (steps.largest.has_value()) reply.set_largest_step(steps.largest->value);
  return reply;
}

// Adds the replies of all servers to one. Calls DONE with the sum, or with the first error.
class SaveSum {
 public:
  SaveSum(size_t server_count, JobCheckpoints::SaveDone done)
      : missing_count_(server_count), done_(std::move(done)) {}

  // NAME: of the server that has replied.
  void Add(const std::string& name, const absl::StatusOr<SaveCheckpointReply>& reply) {
    if (done_ == nullptr) return;
    if (!reply.ok()) {
      const absl::Status& status = reply.status();
      return std::exchange(
          done_, nullptr)(absl::Status(status.code(), absl::StrCat(name, ": ", status.message())));
    }
    if (reply->has_least_step()) {
      const bool first = !sum_.has_least_step();
      sum_.set_least_step(first ? reply->least_step()
                                : std::min(sum_.least_step(), reply->least_step()));
      sum_.set_largest_step(std::max(sum_.largest_step(), reply->largest_step()));
    }
    if (--missing_count_ == 0) std::exchange(done_, nullptr)(sum_);
  }

 private:
  size_t missing_count_;
  JobCheckpoints::SaveDone done_;  // null: it was called
  SaveCheckpointReply sum_;
};

}  // namespace

void JobCheckpoints::Start(bool recovered) {
  const DurableOptions& durable = *options_.durable;
  checkpointer_ = std::make_unique<Checkpointer>(
      *durable.files,
      Checkpointer::Options{.folder = durable.folder,
                            .interval = durable.checkpoint_interval,
                            .failure_interval = durable.failure_interval,
                            .keep_log = durable.keep_log,
                            .retention = durable.retention,
                            .awaits_keep = aligned() && recovered,
                            .tracer = options_.tracer,
                            .snapshot = durable.snapshot},
      parts_.journal, parts_.clock, control_, parts_.writers.Make(),
      [this] { return parts_.stored.Head(); },
      [this](uint64_t number, const absl::StatusOr<SavedSteps>& result) {
        requests_->Ended(number, result);
      });
  requests_ = std::make_unique<SaveRequests>(*checkpointer_);
  for (const TestedCheckpoint& checkpoint : checkpointer_->tested()) {
    newest_test_ = std::max(checkpoint.test.step, newest_test_.value_or(Step{}));
  }
  if (!aligned()) return;
  awaits_rollback_ = recovered && durable.awaits_rollback;
  if (!parts_.identity.leads()) return;
  lead_ = std::make_unique<CheckpointLead>(parts_.identity.job, options_.server_count, parts_.peers,
                                           control_, static_cast<LeadServer&>(*this),
                                           /*settled=*/!recovered, durable.retention);
}

void JobCheckpoints::Finish() {
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
  requests_->Tick(now, *model);
  if (!aligned()) return checkpointer_->StartIfDue(now, *model);
  if (lead_ == nullptr) return;
  lead_->Tick(now, checkpointer_->interval());
  if (lead_->kept().has_value()) checkpointer_->Keep(lead_->kept_steps());
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
  if (model == nullptr) return;
  const std::optional<Step> newest = checkpointer_->newest_from();
  if (!newest.has_value() || step > *newest) checkpointer_->Start(*model, step);
}

absl::Status JobCheckpoints::CheckSave(const SaveCheckpointRequest& request) const {
  RETURN_IF_ERROR(parts_.identity.CheckJob(request.job()));
  if (!(request.seconds() >= kShortestLimit && request.seconds() <= kLongestLimit)) {
    return absl::InvalidArgumentError(absl::StrCat("seconds: out of range (expected ",
                                                   kShortestLimit, " to ", kLongestLimit, ", got ",
                                                   request.seconds(), ")"));
  }
  if (request.run() != 0) {
    RETURN_IF_ERROR(parts_.identity.CheckFollows());
    RETURN_IF_ERROR(parts_.identity.CheckRun("server 0", RunId{request.run()}));
  }
  if (checkpointer_ == nullptr) {
    return absl::FailedPreconditionError(
        "durability: the servers of this job keep no checkpoints (expected checkpoint or log, got "
        "none)");
  }
  RETURN_IF_ERROR(CheckAgreed());
  if (aligned() && request.run() != 0 && request.generation() != parts_.identity.generation.value) {
    return absl::UnavailableError(absl::StrCat("a rollback is in progress (expected generation ",
                                               parts_.identity.generation.value, ", got ",
                                               request.generation(), ")"));
  }
  if (parts_.model.Get() == nullptr) {
    return absl::FailedPreconditionError(
        "there are no parameters to save: no worker has joined yet");
  }
  if (lead_ != nullptr && lead_->plans()) {
    return absl::FailedPreconditionError(
        "push: adaptive makes its own checkpoints, at the begin of each round of trials (expected "
        "another push)");
  }
  return absl::OkStatus();
}

void JobCheckpoints::Save(const SaveCheckpointRequest& request, bool live, const SaveDone& done) {
  if (const absl::Status status = CheckSave(request); !status.ok()) return done(status);
  if (request.run() != 0) return SaveOwn(request, done);
  SaveCheckpointRequest passed;
  passed.set_seconds(request.seconds());
  SaveAsLead(passed, live, done);
}

void JobCheckpoints::SaveAsLead(SaveCheckpointRequest request, bool live, const SaveDone& done) {
  request.set_job(parts_.identity.job);
  request.set_run(parts_.identity.run.value);
  request.set_generation(parts_.identity.generation.value);
  if (lead_ != nullptr) {
    const absl::StatusOr<Step> step = lead_->AnnounceNow(parts_.clock.Now(), live);
    if (!step.ok()) return done(step.status());
    request.set_step(step->value);
  }
  SaveEverywhere(request, done);
}

void JobCheckpoints::Heard(const HeartbeatRequest& request) {
  const std::optional<TestResult> test = TestResultOf(request.test());
  if (!test.has_value() || !parts_.identity.leads() || parts_.stopping) return;
  const Member& member = parts_.membership.of(WorkerId{request.worker()});
  if (member.incarnation != Incarnation{request.incarnation()}) return;
  if (checkpointer_ == nullptr || parts_.model.Get() == nullptr || !CheckAgreed().ok()) return;
  // Each heartbeat repeats the newest test.
  if (test->step <= newest_test_) return;
  const size_t best_count = options_.durable->retention.best_count;
  const std::vector<TestedCheckpoint>& tested = checkpointer_->tested();
  if (best_count == 0) return;
  if (tested.size() >= best_count && !test->IsBetterThan(tested[best_count - 1].test)) return;
  newest_test_ = test->step;
  SaveCheckpointRequest save;
  save.set_seconds(kTestSeconds);
  *save.mutable_test() = request.test();
  SaveAsLead(save, !parts_.membership.Live().empty(), [step = test->step](const auto& saved) {
    if (saved.ok()) return;
    LOG(INFO) << "after the test of step " << step << ": " << saved.status().message();
  });
}

void JobCheckpoints::SaveEverywhere(const SaveCheckpointRequest& request, const SaveDone& done) {
  const auto sum = std::make_shared<SaveSum>(options_.server_count, done);
  for (uint32_t s = 1; s < options_.server_count; ++s) {
    parts_.peers->Call(ServerId{s}, request,
                       [this, s, sum](absl::StatusOr<SaveCheckpointReply> reply) {
                         control_.Post([this, s, sum, reply = std::move(reply)] {
                           sum->Add(parts_.peers->NameOf(ServerId{s}), reply);
                         });
                       });
  }
  SaveOwn(request,
          [sum](const absl::StatusOr<SaveCheckpointReply>& reply) { sum->Add("server 0", reply); });
}

void JobCheckpoints::SaveOwn(const SaveCheckpointRequest& request, const SaveDone& done) {
  const auto step = request.has_step() ? std::optional(Step{request.step()}) : std::nullopt;
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  const std::optional<TestResult> test = TestResultOf(request.test());
  // A server without shards may have written the checkpoint of the announced step already.
  if (test.has_value() && !model->hosts().empty()) checkpointer_->SetTest(*test);
  requests_->Add(step, parts_.clock.Now(), absl::Seconds(request.seconds()), *model,
                 [done](const absl::StatusOr<SavedSteps>& saved) {
                   if (!saved.ok()) return done(saved.status());
                   done(ReplyOf(*saved));
                 });
}

void JobCheckpoints::Stop(const absl::Status& status) {
  if (requests_ != nullptr) requests_->Cancel(status);
}

absl::Status JobCheckpoints::CheckRestore() const {
  if (!options_.durable.has_value()) {
    return absl::FailedPreconditionError(
        "durability: the servers of this job keep no checkpoints (expected checkpoint, got none)");
  }
  constexpr char kOffline[] =
      "; stop the job, then use thinwire checkpoint restore DIR --step STEP and train --resume";
  if (!keeps_only_checkpoints()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "durability: the servers of a running job go back together only with checkpoint (got log)",
        kOffline));
  }
  if (!aligned()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "mode: the servers of a running job go back together only in sync and backup (got ssp or "
        "async)",
        kOffline));
  }
  RETURN_IF_ERROR(CheckAgreed());
  if (lead_->plans()) {
    return absl::FailedPreconditionError(
        "push: adaptive goes back to its own checkpoints, and its trials are not part of them "
        "(expected another push)");
  }
  return absl::OkStatus();
}

void JobCheckpoints::Restore(const RestoreCheckpointRequest& request,
                             std::function<void(absl::StatusOr<RestoreCheckpointReply>)> done) {
  if (const absl::Status status = CheckRestore(); !status.ok()) return done(status);
  const uint64_t generation = (parts_.identity.generation + 1).value;
  lead_->Return(Step{request.step()}, [done = std::move(done), generation](const auto& status) {
    if (!status.ok()) return done(status);
    RestoreCheckpointReply reply;
    reply.set_generation(generation);
    done(reply);
  });
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
    if (request.has_kept_step()) {
      std::vector<Step> kept = {Step{request.kept_step()}};
      for (const uint64_t step : request.kept_steps()) kept.push_back(Step{step});
      checkpointer_->Keep(std::move(kept));
    }
    if (request.has_checkpoint_step()) SaveAt(Step{request.checkpoint_step()});
  }
  const ServerCheckpoints own = Checkpoints();
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
  parts_.stopping = true;
  Stop(absl::UnavailableError("the servers go back to another checkpoint"));
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

ServerCheckpoints JobCheckpoints::Checkpoints() const {
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  return {.run = parts_.identity.run,
          .generation = parts_.identity.generation,
          .awaits_rollback = awaits_rollback_,
          .steps = checkpointer_->steps(),
          .frontier = model == nullptr ? Step{} : model->frontier(),
          .writing = checkpointer_->writing(),
          .tested = checkpointer_->tested()};
}

void JobCheckpoints::RollBack(const RollbackOrder& order, Returned done) {
  GoBack(order.step, order.generation, std::move(done));
}

void JobCheckpoints::Fail(const absl::Status& status) { options_.durable->failed(status); }

void JobCheckpoints::FillIn(const HeartbeatRequest& /*request*/, HeartbeatReply& reply) {
  if (const std::optional<Step> step = announced()) reply.set_checkpoint_step(step->value);
}

void JobCheckpoints::FillIn(StatusReply& reply) const {
  reply.set_awaits_rollback(awaits_rollback_);
  if (checkpointer_ != nullptr) checkpointer_->FillIn(reply);
}

}  // namespace thinwire
