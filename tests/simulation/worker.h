// Worker is one worker process of a simulated cluster. It behaves as docs/consistency.md and
// docs/recovery.md require of a client, and is built from the client's own state machines:
// SendQueue, PushEncoder, GtopkReturns, Replica, ServerLiveness, Backoff and the rules of Join.
//
//   joining -> reading -> computing -> pushing -> reading ...
//      ^          |
//      |          +--> leaving -> over
//      +-- a rollback
//
// A server that was started again under the same generation is joined again, and unanswered
// messages are sent again. A higher generation is a rollback: with rounds, the worker joins all
// servers anew; without rounds, it continues with this server alone. Not thread-safe.
#ifndef THINWIRE_TESTS_SIMULATION_WORKER_H_
#define THINWIRE_TESTS_SIMULATION_WORKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/encode/push_encoder.h"
#include "client/encode/residual_file.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/send_queue.h"
#include "client/exchange/server_liveness.h"
#include "client/exchange/status_report.h"
#include "client/replica/replica.h"
#include "client/transport/backoff.h"
#include "common/ids.h"
#include "proto/frame.h"
#include "server/core/testing/random_events.h"
#include "tests/simulation/job.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/network.h"

namespace thinwire::simulation {

// The residuals that the processes of one worker have saved, as on the worker's disk.
struct SavedState {
  Generation generation;
  client::SavedResiduals residuals;
  // For each shard: the account in its ledger, and the number of undone pushes, at that time.
  std::vector<Mass> accounts;
  std::vector<size_t> undone_counts;
};
using SavedStates = std::map<Step, SavedState>;

// Returns the initial values of TENSOR.
std::vector<float> SeedValues(uint32_t tensor);

class Worker {
 public:
  // The objects that outlive the worker's processes. They must outlive this object.
  struct Shared {
    const Job& job;
    SeededRandom& random;
    std::vector<ShardLedger>& ledgers;
    SavedStates& saved;
    std::function<void(const ToServer&)> send;
    std::function<void(const std::string&)> trace;
  };
  struct Plan {
    ProcessId process = 0;
    WorkerId worker;
    uint64_t compute_ticks = 5;  // the maximum duration of the computation of one step
    absl::Duration silence;      // the worker gives up after this silence of a server
  };

  Worker(const Shared& shared, const Plan& plan, uint64_t now);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Tick(uint64_t now);
  void Receive(uint64_t now, const ToWorker& message);
  // Tells the worker that the network no longer has faults. The worker sends all unanswered
  // messages once more, and later only to a server that was started again.
  void TrustNetwork();
  // Ends the process and loses its residuals.
  void Die();

  bool running() const { return phase_ != Phase::kOver && phase_ != Phase::kDead; }
  bool finished() const { return phase_ == Phase::kOver; }
  bool gave_up() const { return gave_up_; }
  // Returns the error with which a server refused the last Join; empty: none.
  const std::string& refusal() const { return refusal_; }
  WorkerId worker() const { return plan_.worker; }
  Incarnation incarnation() const { return incarnation_; }
  std::string Describe() const;
  uint64_t restored_count() const { return restored_count_; }

 private:
  enum class Phase { kJoining, kReading, kComputing, kPushing, kLeaving, kOver, kDead };

  // A server as this process knows it.
  struct Link {
    Link(const Job& job, const Plan& plan, ServerId server, absl::Time now);

    const ServerId server;
    client::SendQueue queue;
    client::Backoff backoff;
    client::ServerLiveness liveness;
    Epoch epoch;
    Generation generation;
    bool joined = false;
    bool left = false;
    uint64_t call = 0;  // the outstanding call to Join or Leave; 0: none
    uint64_t call_again_at = 0;
    uint64_t resend_at = 0;
    JoinReply reply;
    // Pushes that wait for the parameters of their step, because the server went on alone from an
    // earlier state.
    std::map<ShardId, PushEntry> held;
  };

  void StartJoin();
  void CallJoin(Link& link);
  void OnJoin(Link& link, const absl::StatusOr<JoinReply>& reply);
  void OnJoinedAll();
  void OnRejoined(Link& link, const JoinReply& reply);
  void ReadAgain(Link& link, const ShardState& state);
  void OnHeartbeat(Link& link, const HeartbeatReply& reply);
  void OnFrame(Link& link, const ByteChain& bytes);
  void OnVerdict(Link& link, const VerdictEntry& verdict);
  void OnParameters(Link& link, const ParametersEntry& entry);

  // Ends all links. The process then joins all servers again under its incarnation.
  void StartRollback();
  // Restores the residuals that belong to FIRST, the first step after a Join, if there are any.
  void RestoreResiduals(const std::vector<JoinReply>& replies, Step first);
  // Saved residuals, null if there are none to restore, and the shards that restore them.
  struct Choice {
    const SavedState* saved = nullptr;
    std::vector<bool> restored;
  };
  Choice ChooseSaved(const std::vector<JoinReply>& replies) const;
  void SaveResiduals();
  void MakeEncoder();
  void BeginStep(Step step, bool read);
  void Continue();
  void Compute();
  void SendPush(Link& link, PushEntry push);
  void SendQueued();
  void Leave();
  void GiveUpIfSilent();
  void ReportUnanswered();
  void Report();
  void CountReturn(const PushEntry& push, uint64_t lost_before);
  uint64_t lost_returns() const { return report_.counters().lost_gtopk_returns(); }

  bool HasParameters() const;
  bool HasVerdicts() const;
  Link& LinkOf(ShardId shard) { return *links_[shared_.job.partition->server(shard).value]; }
  GradientId IdOf(const PushEntry& push) const;
  void Send(const Link& link, uint64_t call, decltype(ToServer::body) body) const;
  void Trace(const std::string& text) const;

  const Shared shared_;
  const Plan plan_;
  uint64_t now_;
  uint64_t last_run_;
  Phase phase_ = Phase::kJoining;
  uint64_t join_since_;
  RunId run_;
  Incarnation incarnation_;
  std::vector<std::unique_ptr<Link>> links_;
  size_t joined_count_ = 0;   // number of servers joined in phase kJoining
  bool rolled_back_ = false;  // whether the current Join follows a rollback
  bool slept_ = false;        // whether this process was suspended for longer than a lease
  uint64_t last_call_ = 0;
  client::Replica replica_;
  client::StatusReport report_;
  std::unique_ptr<client::PushEncoder> encoder_;
  // For each shard: whether a push without verdict was reported, whose late examples the encoder
  // keeps.
  std::vector<bool> unjudged_;
  std::unique_ptr<client::GtopkReturns> returns_;
  // The accepted push of each shard whose unselected values have not come back.
  std::map<ShardId, PushEntry> unreturned_;
  std::map<ShardId, Step> frontiers_;  // of the newest parameters
  Step step_;
  bool late_ = false;   // whether a push of step_ was late at some shard
  Step jump_;           // the largest frontier in the verdicts of step_
  uint64_t until_ = 0;  // the tick at which the computation ends
  std::optional<Step> checkpoint_step_;
  bool trusts_network_ = false;
  bool gave_up_ = false;
  std::string refusal_;
  uint64_t restored_count_ = 0;
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_WORKER_H_
