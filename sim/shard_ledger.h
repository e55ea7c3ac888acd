// ShardLedger follows every gradient that the workers of a simulated cluster produce for one shard,
// and checks the promises of docs/consistency.md and docs/recovery.md:
//
//   mass       for each worker process: restored + produced = accepted + in the residual + undone by a
//              server that went back. Values that gTop-k does not select are in the residual, or at
//              the server
//   replay     replaying the accepted pushes, update by update, gives the parameters bit for bit
//   clipping   all shards clip a round by the same factor, that of the norm over all shards
//   sums       all shards that share a tensor update it with the same sums, those over all of them
//   codecs     the gradients of an update have the same codec
//   verdicts   a push is judged once per generation, and each verdict is true
//   bound      an answer never exceeds the slack of the rule in force, nor begins a step of the next
//              rule, and contains every step that the frontier promises; an accepted gradient was
//              computed from parameters with every gradient that its rule promises
//   replicas   every replica has the bits that the shard had under the replica's version
//   recovery   a server that replayed its log knows every event whose effects were visible
//
// The mass of a gradient is the sum of its values and its number of examples. Not thread-safe.
#ifndef THINWIRE_SIM_SHARD_LEDGER_H_
#define THINWIRE_SIM_SHARD_LEDGER_H_

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

#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/shard.h"
#include "server/durable/event_log.h"

namespace thinwire::sim {

// Identifies one worker's gradient of one step for a shard.
struct GradientId {
  WorkerId worker;
  Incarnation incarnation;
  Step step;

  auto operator<=>(const GradientId&) const = default;
};

// The mass of gradients. The examples of a push include its late examples.
struct Mass {
  double values = 0;
  int64_t examples = 0;

  Mass& operator+=(const Mass& other);
  Mass& operator-=(const Mass& other);
  friend Mass operator+(Mass a, const Mass& b) { return a += b; }
  friend Mass operator-(Mass a, const Mass& b) { return a -= b; }
  friend std::ostream& operator<<(std::ostream& out, const Mass& mass);
};

// Returns "w3/1 step 12".
std::string NameOf(const GradientId& id);

class ShardLedger {
 public:
  // OPTIONS are those of the shard, and UPDATE that of its parameter group, which must outlive the
  // ledger. SEED: the shard's initial values. TOLERANCE: the largest difference of masses, because
  // the push codec rounds to values whose sums are not exact.
  ShardLedger(const ShardOptions& options, const GroupUpdate& update, std::vector<float> seed,
              double tolerance)
      : options_(options),
        update_(&update),
        seed_(std::move(seed)),
        tolerance_(tolerance),
        rule_(options.rule) {}

  // The functions up to CheckReplica record and check what a worker's process does.

  // A process begins with RESIDUAL: at its first step, or after all servers have gone back.
  void Begin(WorkerId worker, Incarnation incarnation, const Mass& residual);
  void AddProduced(WorkerId worker, Incarnation incarnation, const Mass& mass) {
    accounts_[{worker, incarnation}] += mass;
  }
  // Returns whether the mass of a process is right whose pushes all have verdicts, and whose residual
  // has the mass RESIDUAL. CheckMass requires it.
  bool HasMass(WorkerId worker, Incarnation incarnation, const Mass& residual) const;
  void CheckMass(WorkerId worker, Incarnation incarnation, const Mass& residual);
  // A process has received VERDICT.
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
  // Checks the shard that was recovered from a log up to the record APPLIED. SHARD is null if the
  // log has no state of it.
  void CheckRecovered(const Shard* shard, LogSequence applied);
  // Records that SHARD continues from a checkpoint under GENERATION, and that later events are
  // undone.
  void RollBack(const Shard& shard, Generation generation);
  // Makes the final checks. Must be called after the last event.
  void Close(const Shard& shard);

  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t verdicts(Verdict verdict) const;
  uint64_t update_count() const { return history_.size(); }
  uint64_t rule_changes() const { return rule_changes_; }
  // Returns the number of pushes that were undone and not judged again.
  uint64_t undone_count() const { return rolled_back_.size(); }
  // Returns the number of updates with a factor below 1, and of updates with sums over a tensor.
  uint64_t clipped_count() const;
  uint64_t shared_count() const { return options_.shares_tensor ? history_.size() : 0; }
  // Returns the number of codecs of the accepted gradients.
  size_t codec_count() const { return codecs_.size(); }
  // Returns the numbers of passed checks of masses and of replicas.
  uint64_t checked_masses() const { return checked_masses_; }
  uint64_t checked_replicas() const { return checked_replicas_; }

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
    SquareSums own;                  // of the shard, if its round was full
    std::optional<SquareSums> sums;  // with which the round was closed
  };

  friend std::string CheckFactors(double limit, std::span<const ShardLedger> ledgers);
  friend std::string CheckSums(std::span<const ShardLedger* const> ledgers);
  double FactorOf(const Update& update) const {
    return options_.clip_norm > 0 ? ClipFactor(options_.clip_norm, update.sums->update) : 1;
  }
  static double SquaredNormOfMean(const UpdateGradients& gradients);
  void RecordVerdict(const PushEvent& push, const Judgement& judgement);
  // Checks that the parameters of an accepted push have every gradient that the rule promises.
  void CheckStaleness(const PushEvent& push);
  void RecordUpdate(const Event& event, const Shard& shard);
  void RecordValues(const Shard& shard);
  void CheckBound(const Effects& effects, const Shard& shard);
  void CheckReplay(const Shard& shard);
  void Undo(const Accepted& gradient);
  Mass AccountOf(WorkerId worker, Incarnation incarnation) const;
  // Returns the mass in the shard that the process has pushed.
  Mass FoundOf(WorkerId worker, Incarnation incarnation) const;
  bool IsAccepted(const GradientId& id) const;
  // Calls ACTION(gradient) for each accepted gradient.
  template <typename Action>
  void ForEachAccepted(Action action) const;

  ShardOptions options_;
  const GroupUpdate* update_;
  std::vector<float> seed_;
  double tolerance_;
  // The mass that must be found in the shard and in the residual of each process.
  std::map<std::pair<WorkerId, Incarnation>, Mass> accounts_;
  std::map<GradientId, Mass> rolled_back_;  // undone and not judged again; 0: not in the account
  std::set<GradientId> empty_;              // accepted without examples
  std::vector<Update> history_;
  UpdateGradients pending_;        // accepted gradients that are in no update yet
  std::optional<FullRound> full_;  // the newest one
  std::set<std::tuple<Generation, GradientId>> judged_;
  Generation generation_{1};
  // The parameters as readers receive them.
  std::map<std::pair<Generation, Version>, std::vector<float>> values_;
  std::set<CodecId> codecs_;         // of the gradients in updates
  std::optional<Step> unpublished_;  // the smallest step whose gradient is not yet published
  Step frontier_;
  Rule rule_;  // the rule in force
  uint64_t rule_changes_ = 0;
  LogSequence recorded_ = 0;
  std::map<Verdict, uint64_t> verdicts_;
  uint64_t checked_masses_ = 0;
  uint64_t checked_replicas_ = 0;
  std::vector<std::string> violations_;
};

// Compares the factors of the updates of all shards of a job that clips gradients to the norm LIMIT.
// Returns one line for a violation, or an empty string.
std::string CheckFactors(double limit, std::span<const ShardLedger> ledgers);
// Compares the sums of the updates of all shards that share a tensor. Returns one line for a
// violation, or an empty string.
std::string CheckSums(std::span<const ShardLedger* const> ledgers);

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_SHARD_LEDGER_H_
