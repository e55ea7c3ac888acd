// ShardLedger follows every gradient that a simulated cluster produces for one shard. After each
// event and at the end, it checks the promises of docs/consistency.md, among them that no gradient
// is lost or applied twice:
//
//   produced = applied + accepted but not yet applied + left in residuals + lost with processes
//
// It also checks that every replica is bit-identical to the parameters that the shard published
// under the version of the replica.
//
// The amount of a gradient is its first value, a whole number, so sums of amounts are exact. Not
// thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_LEDGER_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "server/core/worker_table.h"

namespace thinwire {

// The number of values of a simulated shard. Value 0 of a gradient is the gradient's amount. Value
// 1 and one value at a random index are random numbers, and all other values are 0.
inline constexpr size_t kSimValues = 24;

// Identifies one worker's gradient of one step for a shard.
struct GradientId {
  WorkerId worker;
  Incarnation incarnation;
  Step step;

  auto operator<=>(const GradientId&) const = default;
};

class ShardLedger {
 public:
  // PUBLISH and LAZY_SLOTS are the options of the shard.
  ShardLedger(const Rule& rule, const std::optional<PublishOptions>& publish, bool lazy_slots)
      : rule_(rule), publish_(publish), lazy_slots_(lazy_slots) {}

  void AddProduced(uint64_t amount) { produced_ += amount; }
  void AddResidual(uint64_t amount) { residual_ += amount; }
  void AddLateExamplesOwed(uint64_t examples) { late_owed_ += examples; }
  // Records the push of a process that ended before it received the verdict.
  void AddUnanswered(const PushEvent& push) { unanswered_.push_back(push); }

  // Checks that VALUES are the published values of VERSION.
  void CheckReplica(Version version, std::span<const float> values);

  // Records and checks EVENT, which SHARD has applied with EFFECTS. Must be called after each
  // event. OPTIMIZER is the optimizer of SHARD.
  void Record(const Event& event, const Effects& effects, const Shard& shard,
              const RecordingOptimizer& optimizer);
  // Makes the final checks. Must be called after the last event.
  void Close(const Shard& shard);

  // Records a violation with the text CLAIM if the checked condition HOLDS is false.
  void Require(bool holds, const std::string& claim);

  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t verdicts(Verdict verdict) const;
  uint64_t update_count() const { return updates_; }

 private:
  void RecordVerdict(const PushEvent& push, const Judgement& judgement);
  void RecordUpdates(const RecordingOptimizer& optimizer);
  void RecordPublished(const Shard& shard);
  void CheckBound(const Effects& effects, const Shard& shard);

  const Rule rule_;
  const std::optional<PublishOptions> publish_;
  const bool lazy_slots_;
  std::map<Version, std::vector<float>> published_;
  std::optional<Step> unpublished_;  // the smallest step whose gradient is not yet published
  uint64_t produced_ = 0;
  uint64_t applied_ = 0;
  uint64_t residual_ = 0;
  uint64_t late_examples_ = 0;
  uint64_t late_credited_ = 0;
  uint64_t late_owed_ = 0;
  size_t updates_ = 0;
  Step frontier_;
  std::map<GradientId, PushEvent> pending_;  // accepted gradients that are in no update yet
  std::set<GradientId> accepted_;
  std::set<std::tuple<WorkerId, Step>> accepted_steps_;
  std::set<GradientId> late_;
  std::vector<PushEvent> unanswered_;
  std::map<Verdict, uint64_t> verdicts_;
  std::vector<std::string> violations_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_LEDGER_H_
