// SimClient is one worker process in a simulated cluster. It behaves as docs/consistency.md
// requires of a client.
//
//   joining -> reading -> computing -> pushing -> reading ...
//                 |
//                 +--> leaving -> over
//
// The client keeps a push until its verdict arrives, and resends the push if no verdict arrives.
// After a late verdict, the client adds the late values back to the residual and reads a later
// step. It stops when it is fenced. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_CLIENT_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_CLIENT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/publish/version_log.h"
#include "server/core/read_form.h"
#include "server/core/testing/random_events.h"
#include "server/core/testing/sim_ledger.h"
#include "server/core/testing/sim_network.h"

namespace thinwire {

// A simulated process's replica of the published parameters of one shard, updated as docs/wire.md
// defines.
class SimReplica {
 public:
  // Applies CHAIN. Returns a description of the first error in CHAIN, or an empty string.
  std::string Apply(const DeltaChain& chain);

  // Returns the form of the next read.
  ReadForm form() const { return held_ ? ReadForm::Since(*held_) : ReadForm::Published(); }
  std::optional<Version> held() const { return held_; }
  std::span<const float> values() const { return values_; }

 private:
  std::string Apply(const PublishedDelta& delta);

  std::vector<float> values_;
  std::optional<Version> held_;
};

struct SimClientPlan {
  bool by_round = true;
  bool reads_deltas = false;
  WorkerId worker;
  Incarnation incarnation;
  Step last;                   // the job ends before this step
  uint64_t compute_ticks = 5;  // maximum duration of the computation of one step
};

class SimClient {
 public:
  // A Join or Leave call to a shard. The simulation never loses such a call and answers it in the
  // same tick.
  using Control = absl::FunctionRef<Effects(uint32_t shard, const Event& event)>;

  SimClient(const SimClientPlan& plan, SeededRandom& random, std::vector<ShardLedger>& ledger)
      : plan_(plan), random_(random), ledgers_(ledger), shards_(ledger.size()) {}

  void Tick(uint64_t now, Control control, SimNetwork<MessageToShard>& network);
  void Receive(const MessageToWorker& message);
  // Tells the client that the network no longer has faults. The client resends all unanswered
  // messages once, and never resends a message after that.
  void TrustNetwork() { trusts_network_ = true, resend_at_ = 0; }
  // Ends the process and loses its residuals.
  void Die();

  bool running() const { return phase_ != Phase::kOver && phase_ != Phase::kDead; }
  bool finished() const { return phase_ == Phase::kOver; }
  WorkerId worker() const { return plan_.worker; }
  Incarnation incarnation() const { return plan_.incarnation; }
  std::string Describe() const;

 private:
  enum class Phase { kJoining, kReading, kComputing, kPushing, kLeaving, kOver, kDead };

  struct PerShard {
    JoinAnswer join;
    std::optional<Step> answered;  // the largest step for which parameters arrived
    Version held;
    SimReplica replica;
    uint64_t residual = 0;
    uint64_t late_examples = 0;
    std::optional<PushEvent> push;  // the push that still lacks a verdict
  };

  void JoinNext(Control control);
  void LeaveNext(Control control);
  void BeginStep(uint64_t now, Step step, SimNetwork<MessageToShard>& network, bool read);
  void SendReads(uint64_t now, SimNetwork<MessageToShard>& network);
  void SendRead(uint64_t now, SimNetwork<MessageToShard>& network, uint32_t shard, Step step);
  void SendPushes(uint64_t now, SimNetwork<MessageToShard>& network);
  void WaitToResend(uint64_t now);
  void ComputeAndPush(uint64_t now, SimNetwork<MessageToShard>& network);
  void ReceiveVerdict(PerShard& shard, ShardLedger& ledger, const Judgement& judgement);
  void ReceiveDeltas(PerShard& shard, ShardLedger& ledger, const DeltaChain& deltas);
  void Continue(uint64_t now, SimNetwork<MessageToShard>& network);
  bool HasParameters() const;
  bool HasVerdicts() const;
  void ReportToLedgers();
  // Returns the step for which the client awaits parameters.
  Step awaited() const { return phase_ == Phase::kReading ? step_ : step_ + 1; }
  ReadForm FormOf(const PerShard& shard) const;
  void Send(uint64_t now, SimNetwork<MessageToShard>& network, uint32_t shard, const Event& event);

  const SimClientPlan plan_;
  SeededRandom& random_;
  std::vector<ShardLedger>& ledgers_;
  std::vector<PerShard> shards_;
  Phase phase_ = Phase::kJoining;
  uint32_t joined_count_ = 0;  // number of shards that this process has joined and not left
  Step step_;
  bool late_ = false;   // whether a push of step_ was late at some shard
  Step jump_;           // the largest frontier in the verdicts of step_
  uint64_t until_ = 0;  // the tick at which the computation ends
  uint64_t resend_at_ = 0;
  bool trusts_network_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_CLIENT_H_
