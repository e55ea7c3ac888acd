// Job is a simulated job: the settings that all its processes share. DrawJob draws them from a
// seed.
#ifndef THINWIRE_TESTS_SIMULATION_JOB_H_
#define THINWIRE_TESTS_SIMULATION_JOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/shard.h"
#include "server/core/testing/random_events.h"

namespace thinwire::simulation {

// The number of values of a shard. Each shard is one tensor.
inline constexpr size_t kShardValues = 24;

// The simulation's unit of time.
inline constexpr absl::Duration kTick = absl::Milliseconds(50);
inline constexpr uint64_t kLeaseTicks = 60;

inline absl::Time TimeOf(uint64_t tick) { return absl::UnixEpoch() + tick * kTick; }

// A rule of the recovery that a simulated process breaks on purpose, so that a test can show that
// the simulation finds it.
enum class BrokenRule : uint8_t {
  kNone,
  kVerdictNotSaved,        // a checkpoint forgets the verdicts of the last pushes
  kSentBeforeFlush,        // effects leave the server before their record is flushed
  kResidualOfAnotherStep,  // a worker restores its newest residuals whatever their step is
  kRollbackToAnotherStep,  // each server rolls back to its own newest checkpoint
  kClippedByOwnNorm,       // a shard clips a round by the norm of its own part
  kRuleNotPassedOn,        // a lead passes its rule on only when it changes
  kServersNotReminded,     // a lead passes its rule on only when it changes or starts again
  kRuleNotStored,    // a lead that goes on from a checkpoint forgets later changes of the rule
  kOldRuleFollowed,  // a server performs requests of the lead that arrive after newer ones
};

inline constexpr const char* kBrokenRuleNames[] = {"none",
                                                   "verdict-not-saved",
                                                   "sent-before-flush",
                                                   "residual-of-another-step",
                                                   "rollback-to-another-step",
                                                   "clipped-by-own-norm",
                                                   "rule-not-passed-on",
                                                   "servers-not-reminded",
                                                   "rule-not-stored",
                                                   "old-rule-followed"};

struct Job {
  Rule rule;
  Durability durability = Durability::kNone;
  CodecSpec push;
  ShardOptions shard;  // without the generation
  OptimizerSpec optimizer_spec;
  double clip_norm = 0;  // the largest norm of an averaged gradient; 0: no limit
  uint32_t server_count = 1;
  uint32_t shard_count = 1;
  std::string name = "simulated";
  Step last;  // workers leave before this step
  BrokenRule broken = BrokenRule::kNone;

  std::shared_ptr<const Partition> partition;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<const Schedule> schedule;

  bool by_round() const { return rule.fold == Fold::kRound; }
  // Returns the number of the tensor that is SHARD.
  uint32_t TensorOf(ShardId shard) const { return partition->segments(shard)[0].tensor; }
  bool publishes() const { return shard.publish.has_value(); }
  // Returns whether sums of pushed values are exact, so that masses are compared without tolerance.
  bool exact() const { return push.id != CodecId::kInt8; }

  // Returns OK if the job may have the mode of RULE (thinwire::Job::CheckMode). Errors:
  // InvalidArgument.
  absl::Status CheckMode(const Rule& rule) const;

  friend std::ostream& operator<<(std::ostream& out, const Job& job);
};

// Sets `partition`, `optimizer` and `schedule` of JOB from its other fields.
void Complete(Job& job);

// Draws a job with RULE and DURABILITY.
Job DrawJob(SeededRandom& random, const Rule& rule, Durability durability);
// Draws whether JOB clips its averaged gradients, if JobSpec allows it.
void DrawClipping(SeededRandom& random, Job& job);

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_JOB_H_
