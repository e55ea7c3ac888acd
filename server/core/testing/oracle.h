// Oracle implements docs/consistency.md a second time, in a simple and slow way. It decides from a
// trace of all events, which each query reads from the beginning. It closes rounds one by one, so
// steps must be small numbers.
//
// With the staleness policy dcasgd, the oracle decides all effects except Judgement::uncompensated,
// and its sums are those of the gradients without compensation.
//
// In a shard that shares a tensor, the oracle expects the sums of a RecordingOptimizer (fakes.h).
//
// The oracle shares no code with Shard; oracle_test.cc compares their results. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_ORACLE_H_
#define THINWIRE_SERVER_CORE_TESTING_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/core/testing/event_trace.h"

namespace thinwire {

class Oracle {
 public:
  // The expected arguments of the optimizer for one update.
  struct Expected {
    std::vector<double> sum;
    uint64_t weight = 0;
    double factor = 1;
    std::optional<SquareSums> measured;
    double rate_factor = 0;
    uint64_t examples_before = 0;
  };

  explicit Oracle(const ShardOptions& options)
      : options_(options), trace_(options.rule.max_workers) {}

  Effects Apply(const Event& event);

  std::vector<BlockedRead> BlockedReads() const;
  const std::vector<Expected>& updates() const { return updates_; }
  Version version() const { return Version{updates_.size()}; }
  // Returns the newest published version. REQUIRES: options.publish is set.
  Version published() const { return published_; }
  Step frontier() const { return trace_.Frontier(); }
  bool open() const { return trace_.Opened(); }
  // Returns the rule in force.
  Rule rule() const { return trace_.RuleInForce().value_or(options_.rule); }
  Step Next(WorkerId worker) const { return trace_.Next(worker); }
  // Returns the frontier as it is when the held rounds have ended.
  Step NextFrontier() const { return held_.empty() ? frontier() : held_.back().step + 1; }
  // Returns all events since the beginning, with their consequences.
  const EventTrace& trace() const { return trace_; }

 private:
  uint32_t WorkersToOpen() const;
  // Returns kStale or kFenced if the sender of the trace entry NOW is invalid, else nullopt.
  std::optional<Verdict> RejectSender(const TraceEntry& now) const;
  Judgement JudgePush(const TraceEntry& now) const;
  JoinAnswer AnswerJoin(WorkerId worker) const;
  // Classify and ClassifyPush set the fields of the trace entry NOW that depend on the event's
  // kind.
  void Classify(TraceEntry& now, Effects& effects) const;
  void ClassifyPush(TraceEntry& now, Effects& effects) const;
  // Puts the next rule in force if it is due. Returns whether it did.
  bool ChangeRule();
  void UpdateFromPending(const std::optional<SquareSums>& sums = std::nullopt);
  void Open(Effects& effects);
  bool AnyWorkerFinished(Step round) const;
  void CloseRounds(bool all_gone, Effects& effects);
  // Returns whether a full round waits for its sum event.
  bool NeedsSums() const { return options_.clip_norm > 0 || options_.shares_tensor; }
  double SquaredNorm(const std::vector<size_t>& gradients) const;
  void EndHeldRounds(const std::optional<SquareSums>& sums, Effects& effects);
  void MoveOn(bool all_gone, Effects& effects);
  void MoveFrontier();
  void Publish(Step frontier_before, bool rule_changed);
  void AnswerReads(Effects& effects);

  const ShardOptions options_;
  EventTrace trace_;
  std::vector<Expected> updates_;
  // The rounds that accept no more pushes and wait for the sum event of the first one.
  std::vector<ClosedRound> held_;
  Version published_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_ORACLE_H_
