// RulePlan is the newest consistency rule of a job and the number of workers that the operator
// wants. It makes the next rule:
//
//   request                       next rule
//   another number of workers     the same mode and number of backup workers
//   another mode                  that of the request, if the other settings of the job allow it
//
// A pure state machine. Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_STATE_RULE_PLAN_H_
#define THINWIRE_SERVER_PROTOCOLS_STATE_RULE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "server/core/event.h"

namespace thinwire {

// The settings of a job that forbid modes.
struct ModeLimits {
  SparseUpdateSpec sparse_updates;
  std::optional<PublishOptions> publish;
  StalenessSpec staleness;
  bool grows_batch = false;
  double clip_norm = 0;
  bool keeps_only_checkpoints = false;  // durability: checkpoint
  bool adaptive = false;                // push: adaptive
  bool relays = false;                  // the job of a site (docs/sites.md)
  std::optional<JobConfig> config;      // nullopt: no mode has a warning
};

class RulePlan {
 public:
  // FIRST: the rule of the job file.
  RulePlan(const Rule& first, ModeLimits limits)
      : first_(first), limits_(std::move(limits)), newest_{first, {}}, target_(first.workers) {}

  // Sets the rule to that of an earlier process of this server.
  void Restore(const RuleEvent& event);
  // At the lead, sets the rule to that of a request that an earlier process has stored. If this is
  // another rule than the restored one, it begins at LEAST or later. Errors: InvalidArgument.
  absl::Status Restore(const SetModeRequest& request, Step least);
  // Continues a reduction to WORKERS that an earlier process has begun; 0: there is none.
  void RestoreReduction(uint32_t workers);

  // Returns the newest rule, which the shards of this server follow, or will follow from a later
  // step on.
  const RuleEvent& newest() const { return newest_; }
  const Rule& rule() const { return newest_.rule; }
  // Returns the number of workers that the operator wants. Workers with higher numbers must leave
  // and cannot join.
  uint32_t target() const { return target_; }
  void set_target(uint32_t workers) { target_ = workers; }
  // Returns the number of workers of a reduction that is not complete; 0: there is none.
  uint32_t reduction() const { return target_ < rule().workers ? target_ : 0; }

  // EVENT has the newest rule from now on.
  void Follow(const RuleEvent& event);

  // Returns the rule for another number of workers. Errors: InvalidArgument for a number that the
  // job does not allow.
  absl::StatusOr<Rule> RuleFor(uint32_t workers) const;
  // Returns the rule of CONSISTENCY. Errors: InvalidArgument for settings that the job does not
  // allow.
  absl::StatusOr<Rule> RuleFor(const Consistency& consistency) const;
  // Returns the rule of an operator's settings. The number of workers and the order of folds stay.
  // Errors: InvalidArgument, also if a reduction that is not complete does not fit the mode.
  absl::StatusOr<Rule> RuleForMode(Consistency consistency) const;
  // Returns the settings of the job with which training may diverge under RULE, and not under the
  // newest rule.
  std::vector<std::string> NewWarnings(const Rule& rule) const;

 private:
  // Returns OK if the job may have the mode of RULE. Errors: InvalidArgument.
  absl::Status CheckMode(const Rule& rule) const;

  const Rule first_;
  const ModeLimits limits_;
  RuleEvent newest_;
  uint32_t target_;
};

// Returns the settings of RULE.
Consistency ConsistencyOf(const Rule& rule);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_STATE_RULE_PLAN_H_
