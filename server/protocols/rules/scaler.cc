#include "server/protocols/rules/scaler.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "config/parts/consistency.h"

namespace thinwire {

namespace {

// Returns the settings of RULE.
Consistency ConsistencyOf(const Rule& rule) {
  Consistency c;
  Consistency::Mode::Value mode = Consistency::Mode::sync;
  Consistency::Mode::Value_Parse(std::string(rule.mode()), &mode);
  c.set_mode(mode);
  c.set_workers(rule.workers);
  c.set_ordered_fold(rule.ordered_fold);
  if (mode == Consistency::Mode::backup) c.set_backup(rule.workers - rule.quorum);
  if (mode == Consistency::Mode::ssp) c.set_slack(rule.slack);
  if (rule.fold == Fold::kPush) {
    c.set_fold_every(rule.fold_every);
    c.set_in_flight(rule.in_flight);
  } else {
    c.set_delayed_gradient(rule.in_flight > 0);
  }
  return c;
}

}  // namespace

Scaler::Scaler(const Rule& rule, uint32_t server_count, uint64_t change, Peers* peers,
               Executor& control, Server server)
    : first_(rule),
      server_count_(server_count),
      peers_(peers),
      control_(control),
      server_(std::move(server)),
      change_(change),
      newest_{rule, {}},
      target_(rule.workers) {}

void Scaler::Restore(const RuleEvent& event) {
  newest_ = event;
  target_ = event.rule.workers;
}

absl::Status Scaler::Restore(const SetModeRequest& request, Step least) {
  ASSIGN_OR_RETURN(const Rule rule, RuleFor(request.consistency()));
  // A reduction from another number of workers may have been completed meanwhile.
  const uint32_t reduction = rule.workers == this->rule().workers ? this->reduction() : 0;
  const Step from{request.step()};
  Restore({rule, rule == this->rule() ? from : std::max(from, least)});
  RestoreReduction(reduction);
  return absl::OkStatus();
}

void Scaler::RestoreReduction(uint32_t workers) {
  target_ = workers == 0 ? rule().workers : std::min(workers, rule().workers);
}

absl::Status Scaler::Resume() {
  passed_on_ = false;
  restored_ = true;
  return server_.reserve(rule().workers);
}

absl::StatusOr<Rule> Scaler::RuleFor(uint32_t workers) const {
  const uint32_t backup_count = rule().fold == Fold::kRound ? rule().workers - rule().quorum : 0;
  if (workers <= backup_count || workers > first_.max_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: out of range (expected ", backup_count + 1, " to ",
                     first_.max_workers, ", the value of max_workers, got ", workers, ")"));
  }
  Rule rule = this->rule();
  rule.workers = workers;
  if (rule.fold == Fold::kRound) rule.quorum = workers - backup_count;
  return rule;
}

absl::StatusOr<Rule> Scaler::RuleFor(const Consistency& consistency) const {
  Rule rule = RuleOf(consistency);
  rule.max_workers = first_.max_workers;
  Problems problems = rule.Validate();
  RETURN_IF_ERROR(problems.ToStatus());
  RETURN_IF_ERROR(server_.check_mode(rule));
  return rule;
}

absl::Status Scaler::CheckIdle() const {
  if (!changing_) return absl::OkStatus();
  return absl::UnavailableError(
      "the last change of the mode or of the number of workers is not complete");
}

void Scaler::Scale(uint32_t workers, const Done& done) {
  const absl::StatusOr<Rule> rule = RuleFor(workers);
  if (!rule.ok()) return done(rule.status());
  if (const absl::Status idle = CheckIdle(); !idle.ok()) return done(idle);
  ScaleReply reply;
  reply.set_workers(target_);
  if (const auto more = change_lines_.Next(control_.Now())) {
    LOG(INFO) << "the operator changes the number of workers from " << target_ << " to " << workers
              << *more;
  }
  if (workers <= this->rule().workers) {
    const uint32_t before = std::exchange(target_, workers);
    return server_.record([this, done, reply, before](const absl::Status& recorded) {
      if (recorded.ok()) return done(reply);
      target_ = before;
      done(recorded);
    });
  }
  Try({*rule, newest_.from}, [reply, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    done(reply);
  });
}

std::vector<std::string> Scaler::NewWarnings(const Rule& rule) const {
  const Problems before = server_.warnings(ConsistencyOf(this->rule()));
  const Problems after = server_.warnings(ConsistencyOf(rule));
  std::vector<std::string> warnings;
  for (const Problem& problem : after.list()) {
    if (std::ranges::find(before.list(), problem) != before.list().end()) continue;
    warnings.push_back(absl::StrCat(problem.field, ": ", problem.text));
  }
  return warnings;
}

void Scaler::SetMode(const SetModeRequest& request, const SetModeDone& done) {
  Consistency consistency = request.consistency();
  // A reduction that is not complete must fit the new mode, too.
  consistency.set_workers(target_);
  if (const auto rule = RuleFor(consistency); !rule.ok()) return done(rule.status());
  consistency.set_workers(rule().workers);
  consistency.set_ordered_fold(first_.ordered_fold);
  if (first_.fold == Fold::kPush) {
    consistency.set_in_flight(first_.in_flight);
  } else {
    consistency.set_delayed_gradient(first_.in_flight > 0);
  }
  const absl::StatusOr<Rule> rule = RuleFor(consistency);
  if (!rule.ok()) return done(rule.status());
  SetModeReply reply;
  for (const std::string& warning : NewWarnings(*rule)) reply.add_warnings(warning);
  if (reply.warnings_size() > 0 && !request.force()) {
    return done(absl::FailedPreconditionError(
        absl::StrCat(absl::StrJoin(reply.warnings(), "; "),
                     "; thinwire mode --force changes the mode nevertheless")));
  }
  if (const absl::Status idle = CheckIdle(); !idle.ok()) return done(idle);
  const absl::StatusOr<Step> step = server_.step_ahead();
  if (!step.ok()) return done(step.status());
  reply.set_mode(std::string(this->rule().mode()));
  reply.set_step(step->value);
  Try({*rule, *step}, [reply, rule = *rule, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    LOG(INFO) << "the operator changes the mode from " << reply.mode() << " to " << rule
              << ", from step " << reply.step() << " on";
    for (const std::string& warning : reply.warnings()) LOG(WARNING) << warning;
    done(reply);
  });
}

void Scaler::Adjust(const Rule& from, const Rule& to, const std::string& reason) {
  const bool complete = from == rule() && reduction() == 0 && passed_on_ && !changing_;
  const absl::StatusOr<Step> step = server_.step_ahead();
  if (!complete || !step.ok()) return;
  LOG(INFO) << "the lead changes " << from << " to " << to << " from step " << *step << " on; "
            << reason;
  Try({to, *step}, [](const absl::Status& status) {
    if (!status.ok()) LOG(WARNING) << "consistency rule: " << status.message();
  });
}

void Scaler::Try(const RuleEvent& event, std::function<void(const absl::Status&)> done) {
  const absl::Status reserved = server_.reserve(event.rule.workers);
  if (!reserved.ok()) return done(reserved);
  Change(event, [this, done = std::move(done)](const absl::Status& status) {
    done(status);
    if (status.ok()) return;
    // Other servers may have applied the new rule already.
    passed_on_ = false;
    server_.reserve(rule().workers).IgnoreError();
    Change(newest_, [](const absl::Status&) {});
  });
}

void Scaler::Become(const RuleEvent& event, std::function<void()> then) {
  // Fits, because Try has reserved the memory of more workers.
  server_.reserve(event.rule.workers).IgnoreError();
  passed_on_ = true;
  if (event == newest_ && !restored_) return then();
  restored_ = false;
  if (event.rule.workers > rule().workers) target_ = event.rule.workers;
  newest_ = event;
  server_.apply(event, [this, then = std::move(then)] { control_.Post(then); });
}

void Scaler::Follow(const SetModeRequest& request, const SetModeDone& done) {
  if (request.change() < change_) {
    // Without the number of the request, so that the lead logs the error of all its retries once.
    return done(absl::FailedPreconditionError(
        absl::StrCat("change: older than the newest one (expected at least ", change_, ")")));
  }
  change_ = request.change();
  const absl::StatusOr<Rule> rule = RuleFor(request.consistency());
  if (!rule.ok()) return done(rule.status());
  const absl::Status reserved = server_.reserve(rule->workers);
  if (!reserved.ok()) return done(reserved);
  target_ = rule->workers;
  Become({*rule, Step{request.step()}}, [done] { done(SetModeReply()); });
}

void Scaler::Tick(bool may_shrink) {
  if (changing_) return;
  const auto log_error = [this](const absl::Status& status) {
    // The next Tick tries again.
    if (!status.ok() && status != last_error_) {
      LOG(WARNING) << "consistency rule: " << status.message();
    }
    last_error_ = status;
  };
  if (!passed_on_) return Change(newest_, log_error);
  if (target_ >= rule().workers || !may_shrink) return;
  const absl::StatusOr<Rule> rule = RuleFor(target_);
  if (rule.ok()) Change({*rule, newest_.from}, log_error);
}

void Scaler::Remind() {
  if (changing_ || !passed_on_) return;
  for (uint32_t s = 1; s < server_count_; ++s) {
    peers_->SetMode(ServerId{s}, RequestFor(newest_), [](const auto&) {});
  }
}

SetModeRequest Scaler::RequestFor(const RuleEvent& event) const {
  SetModeRequest request = server_.request();
  *request.mutable_consistency() = ConsistencyOf(event.rule);
  request.set_step(event.from.value);
  request.set_change(change_);
  return request;
}

void Scaler::Change(const RuleEvent& event, std::function<void(const absl::Status&)> done) {
  struct Replies {
    uint32_t missing_count;
    absl::Status status;
  };
  changing_ = true;
  ++change_;
  const SetModeRequest request = RequestFor(event);
  const auto finish = [this, event, request, done = std::move(done)](absl::Status status) {
    changing_ = false;
    if (status.ok()) status = server_.store(request);
    if (!status.ok()) return done(status);
    Become(event, [done] { done(absl::OkStatus()); });
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
    peers_->SetMode(ServerId{s}, request, on_reply);
  }
}

}  // namespace thinwire
