// Books: what a simulated cluster's gradients amount to, and where they went. Every claim about the
// rule that can be counted is checked here, after each event and at the end.
//
//   produced = in updates + accepted and waiting + residuals at the end + lost with processes that
//   died
//
// And every replica is what its shard published as that version, bit by bit.
//
// All amounts are whole numbers, so the sums are exact. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_BOOKS_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_BOOKS_H_

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
#include "server/core/progress.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {

// How many values a simulated shard has. The first of a gradient is its amount, the second tells it
// from the others, one of the rest moves by chance.
inline constexpr size_t kSimValues = 24;

// Which gradient of a shard.
struct GradientName {
  WorkerId worker;
  Incarnation incarnation;
  Step step;

  auto operator<=>(const GradientName&) const = default;
};

// Of one shard.
class ShardBooks {
 public:
  // PUBLISH and LAZY_SLOTS as the shard has them.
  ShardBooks(const Rule& rule, const std::optional<PublishOptions>& publish, bool lazy_slots)
      : rule_(rule), publish_(publish), lazy_slots_(lazy_slots) {}

  void Produced(uint64_t amount) { produced_ += amount; }
  void LeftInResidual(uint64_t amount) { residual_ += amount; }
  void LateExamplesOwed(uint64_t examples) { late_owed_ += examples; }
  // The process died without this push's verdict.
  void DiedWithPush(const PushEvent& push) { unanswered_.push_back(push); }

  // A replica holds VALUES as VERSION.
  void Replicated(Version version, std::span<const float> values);

  // To be called after each event. OPTIMIZER is the shard's own.
  void Enter(const Event& event, const Effects& effects, const Shard& shard,
             const RecordingOptimizer& optimizer);
  // To be called when all is over.
  void Close(const Shard& shard);

  void Demand(bool holds, const std::string& claim);

  const std::vector<std::string>& complaints() const { return complaints_; }
  uint64_t verdicts(Verdict verdict) const;
  uint64_t update_count() const { return updates_; }

 private:
  void EnterVerdict(const PushEvent& push, const Judgement& judgement);
  void EnterUpdates(const RecordingOptimizer& optimizer);
  void EnterPublished(const Shard& shard);
  void CheckBound(const Effects& effects, const Shard& shard);

  const Rule rule_;
  const std::optional<PublishOptions> publish_;
  const bool lazy_slots_;
  std::map<Version, std::vector<float>> published_;
  std::optional<Step> unpublished_;  // the oldest step of a gradient in an update not published yet
  uint64_t produced_ = 0;
  uint64_t applied_ = 0;
  uint64_t residual_ = 0;
  uint64_t late_examples_ = 0;
  uint64_t late_taken_ = 0;
  uint64_t late_owed_ = 0;
  size_t updates_ = 0;
  Step frontier_;
  std::map<GradientName, PushEvent> pending_;  // accepted and in no update yet
  std::set<GradientName> accepted_;
  std::set<std::tuple<WorkerId, Step>> given_;
  std::set<GradientName> late_;
  std::vector<PushEvent> unanswered_;
  std::map<Verdict, uint64_t> verdicts_;
  std::vector<std::string> complaints_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_BOOKS_H_
