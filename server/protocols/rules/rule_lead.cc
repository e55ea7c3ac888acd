#include "server/protocols/rules/rule_lead.h"

#include <glog/logging.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/shared_tensors.h"

namespace thinwire {
namespace {

// A server that has forgotten the newest rule follows an older one for up to this time.
constexpr absl::Duration kReminderInterval = absl::Seconds(1);

}  // namespace

// The changes are numbered from the epoch, and not by the clock, so that a suspended earlier
// process that continues stays below this one.
RuleLead::RuleLead(JobState& state, uint32_t server_count, Peers* peers, ServerShards& shards,
                   DecisionStore& store, Clock& clock, Executor& control)
    : state_(state),
      plan_(state.rule),
      server_count_(server_count),
      peers_(peers),
      shards_(shards),
      store_(store),
      clock_(clock),
      control_(control),
      own_(state.rule, shards, control),
      change_(state.identity.epoch.value),
      last_reminder_(clock.Now()) {}

absl::Status RuleLead::Begin() {
  if (!state_.recovered) return absl::OkStatus();
  passed_on_ = false;
  return own_.Resume();
}

absl::StatusOr<Step> RuleLead::StepAhead() {
  const std::optional<Step> next = shards_.LargestNext();
  if (!next.has_value()) {
    return absl::FailedPreconditionError(
        "server 0: cannot announce a step (expected at least one shard on server 0, got none)");
  }
  state_.dealer.Advance(*next, clock_.Now());
  return state_.dealer.StepAhead();
}

absl::Status RuleLead::CheckIdle() const {
  if (!changing_) return absl::OkStatus();
  return absl::UnavailableError(
      "the last change of the mode or of the number of workers is not complete");
}

void RuleLead::Scale(uint32_t workers, const ScaleDone& done) {
  const absl::StatusOr<Rule> rule = plan_.RuleFor(workers);
  if (!rule.ok()) return done(rule.status());
  if (const absl::Status idle = CheckIdle(); !idle.ok()) return done(idle);
  ScaleReply reply;
  reply.set_workers(plan_.target());
  if (const auto more = change_lines_.Next(control_.Now())) {
    LOG(INFO) << "the operator changes the number of workers from " << plan_.target() << " to "
              << workers << *more;
  }
  if (workers <= plan_.rule().workers) {
    const uint32_t before = plan_.target();
    plan_.set_target(workers);
    return store_.RecordLead([this, done, reply, before](const absl::Status& recorded) {
      if (recorded.ok()) return done(reply);
      plan_.set_target(before);
      done(recorded);
    });
  }
  Try({*rule, plan_.newest().from}, [reply, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    done(reply);
  });
}

void RuleLead::SetMode(const SetModeRequest& request, const SetModeDone& done) {
  const absl::StatusOr<Rule> rule = plan_.RuleForMode(request.consistency());
  if (!rule.ok()) return done(rule.status());
  if (shards_.has_model()) {
    const absl::Status allowed = CheckSharedTensors(shards_.partition(), {.rule = *rule});
    if (!allowed.ok()) return done(allowed);
  }
  SetModeReply reply;
  for (const std::string& warning : plan_.NewWarnings(*rule)) reply.add_warnings(warning);
  if (reply.warnings_size() > 0 && !request.force()) {
    return done(absl::FailedPreconditionError(
        absl::StrCat(absl::StrJoin(reply.warnings(), "; "),
                     "; thinwire mode --force changes the mode nevertheless")));
  }
  if (const absl::Status idle = CheckIdle(); !idle.ok()) return done(idle);
  const absl::StatusOr<Step> step = StepAhead();
  if (!step.ok()) return done(step.status());
  reply.set_mode(std::string(plan_.rule().mode()));
  reply.set_step(step->value);
  Try({*rule, *step}, [reply, rule = *rule, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    LOG(INFO) << "the operator changes the mode from " << reply.mode() << " to " << rule
              << ", from step " << reply.step() << " on";
    for (const std::string& warning : reply.warnings()) LOG(WARNING) << warning;
    done(reply);
  });
}

void RuleLead::Adjust(const Rule& from, const Rule& to, const std::string& reason) {
  const bool complete = from == plan_.rule() && plan_.reduction() == 0 && passed_on_ && !changing_;
  const absl::StatusOr<Step> step = StepAhead();
  if (!complete || !step.ok()) return;
  LOG(INFO) << "the lead changes " << from << " to " << to << " from step " << *step << " on; "
            << reason;
  Try({to, *step}, [](const absl::Status& status) {
    if (!status.ok()) LOG(WARNING) << "consistency rule: " << status.message();
  });
}

void RuleLead::Try(const RuleEvent& event, std::function<void(const absl::Status&)> done) {
  const absl::Status reserved = shards_.Reserve(event.rule.workers);
  if (!reserved.ok()) return done(reserved);
  Change(event, [this, done = std::move(done)](const absl::Status& status) {
    done(status);
    if (status.ok()) return;
    // Other servers may have applied the new rule already.
    passed_on_ = false;
    shards_.Reserve(plan_.rule().workers).IgnoreError();
    Change(plan_.newest(), [](const absl::Status&) {});
  });
}

void RuleLead::Tick(absl::Time now) {
  if (!shards_.has_model()) return;
  const std::vector<WorkerId> live = state_.membership.Live();
  Complete(/*may_shrink=*/live.empty() || live.back().value < plan_.target());
  if (now - last_reminder_ < kReminderInterval) return;
  last_reminder_ = now;
  Remind();
}

void RuleLead::Complete(bool may_shrink) {
  if (changing_) return;
  const auto log_error = [this](const absl::Status& status) {
    // The next Tick tries again.
    if (!status.ok() && status != last_error_) {
      LOG(WARNING) << "consistency rule: " << status.message();
    }
    last_error_ = status;
  };
  if (!passed_on_) return Change(plan_.newest(), log_error);
  if (plan_.reduction() == 0 || !may_shrink) return;
  const absl::StatusOr<Rule> rule = plan_.RuleFor(plan_.target());
  if (rule.ok()) Change({*rule, plan_.newest().from}, log_error);
}

void RuleLead::Remind() {
  if (changing_ || !passed_on_) return;
  for (uint32_t s = 1; s < server_count_; ++s) {
    peers_->Call(ServerId{s}, RequestFor(plan_.newest()), [](const auto&) {});
  }
}

SetModeRequest RuleLead::RequestFor(const RuleEvent& event) const {
  SetModeRequest request;
  request.set_job(state_.identity.job);
  request.set_run(state_.identity.run.value);
  *request.mutable_consistency() = ConsistencyOf(event.rule);
  request.set_step(event.from.value);
  request.set_change(change_);
  return request;
}

void RuleLead::Change(const RuleEvent& event, std::function<void(const absl::Status&)> done) {
  struct Replies {
    uint32_t missing_count;
    absl::Status status;
  };
  changing_ = true;
  ++change_;
  const SetModeRequest request = RequestFor(event);
  const auto finish = [this, event, request, done = std::move(done)](absl::Status status) {
    changing_ = false;
    if (status.ok()) status = store_.StoreRule(request);
    if (!status.ok()) return done(status);
    passed_on_ = true;
    own_.Become(event, [done] { done(absl::OkStatus()); });
  };
  if (server_count_ <= 1) return finish(absl::OkStatus());
  const auto replies = std::make_shared<Replies>(Replies{server_count_ - 1, absl::OkStatus()});
  for (uint32_t s = 1; s < server_count_; ++s) {
    const auto on_reply = [this, s, replies, finish](const absl::StatusOr<SetModeReply>& reply) {
      control_.Post([this, s, replies, finish, status = reply.status()] {
        if (!status.ok()) {
          replies->status.Update(absl::Status(
              status.code(), absl::StrCat(peers_->NameOf(ServerId{s}), ": ", status.message())));
        }
        if (--replies->missing_count == 0) finish(replies->status);
      });
    };
    peers_->Call(ServerId{s}, request, on_reply);
  }
}

}  // namespace thinwire
