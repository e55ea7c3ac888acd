#include "config/parts/consistency.h"

#include <algorithm>
#include <cstdint>

namespace thinwire {
namespace {

using Mode = Consistency::Mode;
using Staleness = Consistency::StalenessPolicy;

// The default of max_workers, unless a job has more workers.
constexpr uint32_t kMaxWorkers = 64;

// Returns the rule of the mode, without steps in flight.
Rule ModeOf(const Consistency& c) {
  switch (c.mode()) {
    case Mode::sync:
      return Rule::Sync(c.workers(), c.ordered_fold());
    case Mode::backup:
      return Rule::Backup(c.workers(), c.backup());
    case Mode::ssp:
      return Rule::Ssp(c.workers(), c.slack(), c.fold_every());
    case Mode::async:
      return Rule::Async(c.workers(), c.fold_every());
  }
  return Rule();
}

// Returns true if workers may compute steps with parameters of earlier reads. A recorded run cannot
// be replayed then: its log does not tell how far a worker had read when it computed a step.
bool MayWorkAhead(const JobConfig& config) {
  return !ChoosesPush(config) && !config.recovery().keep_log();
}

// Returns true if gradients of the job may be stale and POLICY treats them.
bool TreatsStale(const JobConfig& config, int policy) {
  return ModeIs(config, {Mode::ssp, Mode::async}) &&
         config.consistency().staleness_policy() == policy;
}

}  // namespace

Rule RuleOf(const Consistency& c) {
  Rule rule = ModeOf(c);
  rule.in_flight = rule.fold == Fold::kPush ? c.in_flight() : c.delayed_gradient() ? 1 : 0;
  rule.max_workers = c.max_workers() != 0 ? c.max_workers() : std::max(c.workers(), kMaxWorkers);
  return rule;
}

StalenessSpec StalenessSpecOf(const Consistency& c) {
  return {.policy = static_cast<StalenessPolicy>(c.staleness_policy()),
          .bound = c.staleness_bound(),
          .lambda = c.dcasgd_lambda(),
          .decay = c.dcasgd_decay()};
}

std::vector<Condition> ConsistencyConditions() {
  return {
      {{"backup", "auto_backup"},
       [](const JobConfig& c) { return ModeIs(c, {Mode::backup}); },
       "mode: backup",
       {"mode"}},
      {{"slack", "auto_slack"},
       [](const JobConfig& c) { return ModeIs(c, {Mode::ssp}); },
       "mode: ssp",
       {"mode"}},
      {{"in_flight"},
       [](const JobConfig& c) {
         return ModeIs(c, {Mode::ssp, Mode::async}) && MayWorkAhead(c);
       },
       "mode: ssp or async, a push codec that is not chosen at run time, and keep_log: false",
       {"mode", "push", "keep_log"}},
      {{"delayed_gradient"},
       [](const JobConfig& c) {
         const Optimization& optimization = c.optimization();
         return ModeIs(c, {Mode::sync, Mode::backup}) && !c.consistency().auto_backup() &&
                MayWorkAhead(c) && optimization.optimizer() != Optimization::Optimizer::average &&
                optimization.selection_rest() != Optimization::SelectionRest::workers;
       },
       "mode: sync or backup, without auto_backup, a push codec that is chosen at run time, "
       "optimizer: average, selection_rest: workers and keep_log: true",
       {"mode", "auto_backup", "push", "optimizer", "selection_rest", "keep_log"}},
      {{"fold_every", "staleness_policy"},
       [](const JobConfig& c) {
         return ModeIs(c, {Mode::ssp, Mode::async});
       },
       "mode: ssp or async",
       {"mode"}},
      {{"staleness_bound"},
       [](const JobConfig& c) { return TreatsStale(c, Staleness::drop); },
       "staleness_policy: drop and mode: ssp or async",
       {"staleness_policy", "mode"}},
      {{"dcasgd_lambda", "dcasgd_decay"},
       [](const JobConfig& c) { return TreatsStale(c, Staleness::dcasgd); },
       "staleness_policy: dcasgd and mode: ssp or async",
       {"staleness_policy", "mode"}},
      {{"ordered_fold"},
       [](const JobConfig& c) { return ModeIs(c, {Mode::sync}); },
       "mode: sync",
       {"mode"}},
  };
}

bool ModeIs(const JobConfig& config, std::initializer_list<int> modes) {
  for (int mode : modes) {
    if (config.consistency().mode() == mode) return true;
  }
  return false;
}

}  // namespace thinwire
