#include "server/protocols/state/rule_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/problems.h"
#include "config/parts/consistency.h"
#include "config/stability.h"

namespace thinwire {
namespace {

// Returns the settings with which training may diverge in a job with CONFIG under RULE.
Problems Warnings(const std::optional<JobConfig>& config, const Rule& rule) {
  if (!config.has_value()) return Problems();
  JobConfig changed = *config;
  changed.mutable_consistency()->MergeFrom(ConsistencyOf(rule));
  return StabilityWarnings(changed);
}

}  // namespace

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

void RulePlan::Restore(const RuleEvent& event) {
  newest_ = event;
  target_ = event.rule.workers;
}

absl::Status RulePlan::Restore(const SetModeRequest& request, Step least) {
  ASSIGN_OR_RETURN(const Rule rule, RuleFor(request.consistency()));
  // A reduction from another number of workers may have been completed meanwhile.
  const uint32_t reduction = rule.workers == this->rule().workers ? this->reduction() : 0;
  const Step from{request.step()};
  Restore({rule, rule == this->rule() ? from : std::max(from, least)});
  RestoreReduction(reduction);
  return absl::OkStatus();
}

void RulePlan::RestoreReduction(uint32_t workers) {
  target_ = workers == 0 ? rule().workers : std::min(workers, rule().workers);
}

void RulePlan::Follow(const RuleEvent& event) {
  if (event.rule.workers > rule().workers) target_ = event.rule.workers;
  newest_ = event;
}

absl::StatusOr<Rule> RulePlan::RuleFor(uint32_t workers) const {
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

absl::StatusOr<Rule> RulePlan::RuleFor(const Consistency& consistency) const {
  Rule rule = RuleOf(consistency);
  rule.max_workers = first_.max_workers;
  Problems problems = rule.Validate();
  RETURN_IF_ERROR(problems.ToStatus());
  RETURN_IF_ERROR(CheckMode(rule));
  return rule;
}

absl::StatusOr<Rule> RulePlan::RuleForMode(Consistency consistency) const {
  // A reduction that is not complete must fit the new mode, too.
  consistency.set_workers(target_);
  RETURN_IF_ERROR(RuleFor(consistency).status());
  consistency.set_workers(rule().workers);
  consistency.set_ordered_fold(first_.ordered_fold);
  if (first_.fold == Fold::kPush) {
    consistency.set_in_flight(first_.in_flight);
  } else {
    consistency.set_delayed_gradient(first_.in_flight > 0);
  }
  return RuleFor(consistency);
}

absl::Status RulePlan::CheckMode(const Rule& rule) const {
  Problems problems = ModeProblems(rule, limits_.sparse_updates, limits_.publish, limits_.staleness,
                                   limits_.grows_batch, limits_.clip_norm);
  if (limits_.keeps_only_checkpoints && rule.fold != first_.fold) {
    // By round, the servers make checkpoints of the same step together; by push, each on its own.
    problems.Add("mode", absl::StrCat("not possible with durability: checkpoint (expected ",
                                      rule.fold == Fold::kPush ? "sync or backup" : "ssp or async",
                                      ", got ", std::string(rule.mode()), ")"));
  }
  if (limits_.adaptive && rule.mode() != "sync") {
    problems.Add("mode", absl::StrCat("not possible with push: adaptive (expected sync, got ",
                                      std::string(rule.mode()), ")"));
  }
  if (limits_.relays && rule.fold != Fold::kRound) {
    problems.Add("mode", absl::StrCat("not possible in a site (expected sync or backup, got ",
                                      std::string(rule.mode()), ")"));
  }
  return problems.ToStatus();
}

std::vector<std::string> RulePlan::NewWarnings(const Rule& rule) const {
  const Problems before = Warnings(limits_.config, this->rule());
  const Problems after = Warnings(limits_.config, rule);
  std::vector<std::string> warnings;
  for (const Problem& problem : after.list()) {
    if (std::ranges::find(before.list(), problem) != before.list().end()) continue;
    warnings.push_back(absl::StrCat(problem.field, ": ", problem.text));
  }
  return warnings;
}

}  // namespace thinwire
