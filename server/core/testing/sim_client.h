// SimClient: one worker's process in a simulated cluster, as design and docs/consistency.md want a
// client to be.
//
//   joining -> reading -> computing -> pushing -> reading ...     a late verdict: reads again, for
//   a later step
//                                              -> leaving -> over
//
// It keeps a push's bytes until the verdict and sends them again when nothing comes; it gives late
// values back to the residual; it stops when it is fenced. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_CLIENT_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/testing/histories.h"
#include "server/core/testing/sim_books.h"
#include "server/core/testing/sim_replica.h"
#include "server/core/testing/sim_wire.h"

namespace thinwire {

struct SimClientPlan {
  bool by_round = true;
  bool reads_deltas = false;
  WorkerId worker;
  Incarnation incarnation;
  Step last;                   // the first step that is not done any more
  uint64_t compute_ticks = 5;  // at most
};

class SimClient {
 public:
  // A control call: it is not lost, and answered in the same tick.
  using Control = absl::FunctionRef<Effects(uint32_t shard, const Event& event)>;

  SimClient(const SimClientPlan& plan, Dice& dice, std::vector<ShardBooks>& books)
      : plan_(plan), dice_(dice), books_(books), shards_(books.size()) {}

  void Tick(uint64_t now, Control control, Wire<ToShard>& wire);
  void Hear(const ToWorker& letter);
  // Sends what is unanswered once more, and from now on nothing twice: the wire has become
  // faithful.
  void TrustWire() { trusts_wire_ = true, resend_at_ = 0; }
  // The process dies, and its residuals with it.
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
    std::optional<Step> answered;  // the largest step that parameters came for
    Version held;
    SimReplica replica;
    uint64_t residual = 0;
    uint64_t late_examples = 0;
    std::optional<PushEvent> push;  // without a verdict
  };

  void JoinNext(Control control);
  void LeaveNext(Control control);
  void BeginStep(uint64_t now, Step step, Wire<ToShard>& wire, bool read);
  void SendReads(uint64_t now, Wire<ToShard>& wire);
  void SendRead(uint64_t now, Wire<ToShard>& wire, uint32_t shard, Step step);
  void SendPushes(uint64_t now, Wire<ToShard>& wire);
  void WaitToResend(uint64_t now);
  void ComputeAndPush(uint64_t now, Wire<ToShard>& wire);
  void HearVerdict(PerShard& shard, ShardBooks& books, const Judgement& judgement);
  void HearDeltas(PerShard& shard, ShardBooks& books, const DeltaChain& deltas);
  void GoOn(uint64_t now, Wire<ToShard>& wire);
  bool HasParameters() const;
  bool HasVerdicts() const;
  void Settle();
  // The step whose parameters are to come.
  Step awaited() const { return phase_ == Phase::kReading ? step_ : step_ + 1; }
  ReadForm FormOf(const PerShard& shard) const;
  void Send(uint64_t now, Wire<ToShard>& wire, uint32_t shard, const Event& event);

  const SimClientPlan plan_;
  Dice& dice_;
  std::vector<ShardBooks>& books_;
  std::vector<PerShard> shards_;
  Phase phase_ = Phase::kJoining;
  uint32_t called_ = 0;  // the shards that have joined, or left
  Step step_;
  bool late_ = false;   // some shard was late in this step
  Step jump_;           // the largest frontier that a verdict carried
  uint64_t until_ = 0;  // the tick that computing ends
  uint64_t resend_at_ = 0;
  bool trusts_wire_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_CLIENT_H_
