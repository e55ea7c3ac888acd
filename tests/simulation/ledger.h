// ShardLedger follows every gradient that a simulated cluster produces for one shard, and checks
// the promises of docs/consistency.md and docs/recovery.md:
//
//   mass       for each worker: produced = applied or accepted + in residuals + lost with processes
//              + rolled back. The unselected values of gTop-k are in residuals, or at the server
//   replay     replaying the accepted pushes, update by update, gives the parameters bit for bit
//   clipping   all shards clip a round by the same factor, that of the norm over all shards
//   verdicts   a push is judged once per generation, and each verdict is true
//   bound      an answer never exceeds the slack of the rule in force, nor begins a step of the next
//              rule, and contains every step that the frontier promises
//   replicas   every replica has the bits that the shard had under the replica's version
//   recovery   a server that replayed its log knows every event whose effects were visible
//
// The mass of a gradient is the sum of its values and its number of examples. The ledger keeps one
// account per worker: the mass that must be found in the shard and in the worker's residual. Its
// parts belong to the worker's processes, because a process may still run when its successor has
// joined. Not thread-safe.
#ifndef THINWIRE_TESTS_SIMULATION_LEDGER_H_
#define THINWIRE_TESTS_SIMULATION_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/memory/byte_chain.h"
#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/durable/event_log.h"
#include "sim/gradient_mass.h"
#include "tests/simulation/job.h"

namespace thinwire::simulation {

using sim::GradientId;
using sim::Mass;

// Returns the mass of a push of a shard.
Mass MassOf(const ByteChain& payload, uint32_t examples, uint32_t late_examples);

class ShardLedger {
 public:
  // JOB must outlive the ledger. SEED: the shard's initial values.
  ShardLedger(const Job& job, std::vector<float> seed)
      : job_(&job),
        seed_(std::move(seed)),
        accounts_(job.rule.max_workers),
        newest_(job.rule.max_workers),
        restored_(job.rule.max_workers),
        rule_(job.rule) {}

  // The functions up to Require record what a worker's process does. Those whose names begin with
  // Add ignore a process whose successor has restored the residuals.

  void AddProduced(WorkerId worker, Incarnation incarnation, const Mass& mass);
  // A process has ended with RESIDUAL, the mass of its residual.
  void AddEnded(WorkerId worker, Incarnation incarnation, const Mass& residual) {
    AddProduced(worker, incarnation, Mass() - residual);
  }
  // A process has ended or given up a push before it received the verdict or, with gTop-k, the
  // unselected values of the push.
  void AddUnanswered(const GradientId& id, const Mass& mass);
  // Returns the mass that must be found in the shard and in the residual of the process, if all
  // earlier processes of the worker end now: their residuals and their pushes that are not accepted
  // are lost. REQUIRES: the process has joined, and no later one has.
  Mass AccountOf(WorkerId worker, Incarnation incarnation) const;
  // A process continues with the residual that belongs to ACCOUNT, or without a residual if ACCOUNT
  // is nullopt. Earlier processes of the worker, and its earlier pushes without verdict, no longer
  // count.
  void Reset(WorkerId worker, Incarnation incarnation, std::optional<Mass> account);
  // A process of WORKER has joined: pushes of its predecessors that are not accepted are lost.
  void CloseUnanswered(WorkerId worker, Incarnation incarnation);
  // Returns the newest incarnation that has joined.
  Incarnation newest(WorkerId worker) const { return newest_[worker.value]; }
  // Returns the number of pushes that were undone so far.
  size_t undone_count() const { return undone_.size(); }
  // Returns the mass of the worker's pushes of steps below STEP that were undone after the first
  // COUNT undone pushes.
  Mass UndoneSince(WorkerId worker, size_t count, Step step) const;
  // A process has received VERDICT for a push that is not empty.
  void CheckVerdict(const GradientId& id, Verdict verdict);
  // Checks that VALUES are the parameters of VERSION under GENERATION.
  void CheckReplica(Generation generation, Version version, std::span<const float> values);

  // Records a violation with the text CLAIM if the checked condition HOLDS is false.
  void Require(bool holds, const std::string& claim);

  // Records and checks EVENT, which SHARD has applied with EFFECTS. SEQUENCE is the event's record,
  // 0 without a log. Must be called after each event, also if a replay applies it for the first
  // time.
  void Record(const Event& event, const Effects& effects, const Shard& shard, LogSequence sequence);
  // Returns the newest recorded event.
  LogSequence recorded() const { return recorded_; }
  // Checks SHARD, which was recovered from a log up to the record APPLIED.
  void CheckRecovered(const Shard& shard, LogSequence applied);
  // Records that SHARD continues from a checkpoint under GENERATION, and that later events are
  // undone.
  void RollBack(const Shard& shard, Generation generation);
  // Makes the final checks. Must be called after the last event, when all processes have ended.
  void Close(const Shard& shard);

  // Counts an answer to a read of published parameters, with deltas or with all values.
  void CountAnswer(bool with_deltas) { ++(with_deltas ? delta_answers_ : full_answers_); }

  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t verdicts(Verdict verdict) const;
  uint64_t update_count() const { return history_.size(); }
  uint64_t rule_changes() const { return rule_changes_; }
  // Returns the number of updates with a factor below 1.
  uint64_t clipped_count() const;
  uint64_t delta_answers() const { return delta_answers_; }
  uint64_t full_answers() const { return full_answers_; }

 private:
  struct Accepted {
    GradientId id;
    uint32_t examples = 0;
    uint32_t late_examples = 0;
    CheckedPayload payload;
    Mass applied;  // the mass that the update contains, or the server keeps
  };
  // The accepted gradients of one update, in the order in which they arrived.
  using UpdateGradients = std::vector<Accepted>;
  struct Update {
    UpdateGradients gradients;
    double factor = 1;  // of a clipping job
  };

  friend std::string CheckFactors(double limit, std::span<const ShardLedger> ledgers);
  void RecordVerdict(const PushEvent& push, const Judgement& judgement);
  void RecordUpdate(const Event& event, const Shard& shard);
  void RecordValues(const Shard& shard);
  void CheckBound(const Effects& effects, const Shard& shard);
  void CheckReplay(const Shard& shard);
  void Undo(const Accepted& gradient);
  // Returns the part of the gradient's mass that is in the shard, or that a rollback undid.
  Mass FoundOf(const GradientId& id) const;
  // Returns the mass in the shard that processes of the worker before END have pushed.
  Mass FoundOf(WorkerId worker, Incarnation end) const;
  // Returns the whole account of the worker.
  Mass SumOf(WorkerId worker) const;
  bool IsAccepted(const GradientId& id) const;
  std::vector<const Accepted*> AllAccepted() const;

  const Job* job_;
  std::vector<float> seed_;
  std::vector<std::map<Incarnation, Mass>> accounts_;  // for each worker: the parts of its account
  std::vector<Incarnation> newest_;    // for each worker: the newest incarnation that has joined
  std::vector<Incarnation> restored_;  // for each worker: the newest one of a Reset
  std::map<GradientId, Mass> unanswered_;
  std::map<GradientId, Mass> rolled_back_;  // undone and not judged again; 0: not in the account
  std::vector<std::pair<GradientId, Mass>> undone_;  // a negative mass: judged again
  std::vector<Update> history_;
  UpdateGradients pending_;  // accepted gradients that are in no update yet
  std::set<std::tuple<Generation, GradientId>> judged_;
  Generation generation_;
  // The parameters as readers receive them.
  std::map<std::pair<Generation, Version>, std::vector<float>> values_;
  std::optional<Step> unpublished_;  // the smallest step whose gradient is not yet published
  Step frontier_;
  Rule rule_;  // the rule in force
  uint64_t rule_changes_ = 0;
  LogSequence recorded_ = 0;
  std::map<Verdict, uint64_t> verdicts_;
  uint64_t delta_answers_ = 0;
  uint64_t full_answers_ = 0;
  std::vector<std::string> violations_;
};

// Compares the factors of the updates of all shards of a job that clips gradients to the norm LIMIT.
// Returns one line for a violation, or an empty string.
std::string CheckFactors(double limit, std::span<const ShardLedger> ledgers);

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_LEDGER_H_
