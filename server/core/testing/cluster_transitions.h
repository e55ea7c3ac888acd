// ClusterTransitions is the model of a small cluster that Exploration visits: two shards, three
// workers and a few steps. A Cluster is its state, an Action is one delivery, fault or start.
//
//   crash    a worker process ends; later a new process of the worker may join
//   loss     a message arrives, but the verdict and the answers that it causes are lost
//   repeat   an earlier push of a worker arrives again, also one of a dead process
//   expiry   the lease of a living process runs out at one shard
//   server   the server of shard 0 ends and comes back
//   stop     a process that waits for parameters leaves, as after SIGTERM
//   change   a rule event arrives at one shard, at any time, or never
//
// In a job with sums over shards, the sum event of a full round arrives at each shard at any time
// after both shards have finished the round.
//
// As long as the server of shard 0 may end, it has an event log: messages wait as records until a
// commit, which applies them and sends their effects. When the server ends, the commit may be torn:
// its first records survive without effects, and the others are lost. The processes join the shard
// again and send their unanswered messages again. Without a further crash, a record that waits for
// its commit cannot be told from a message that is still in the network, so there is no log.
//
// Each process behaves as docs/consistency.md requires of a client. The shards are real
// (shard_states.h). Besides the checks of ShardStates, each transition checks that
//
//   - every verdict is true: an accepted push is in the shard, a late push is not
//   - a server that comes back has every push that it has acknowledged
//   - no process is fenced unless a newer one exists, and no push is stale, early or refused
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_CLUSTER_TRANSITIONS_H_
#define THINWIRE_SERVER_CORE_TESTING_CLUSTER_TRANSITIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/testing/shard_states.h"

namespace thinwire {

inline constexpr uint32_t kExploredShards = 2;
inline constexpr uint32_t kExploredWorkers = 3;

// The largest number of faults of each kind in one path.
struct FaultBudget {
  uint8_t crashes = 0;
  uint8_t losses = 0;
  uint8_t repeats = 0;
  uint8_t expiries = 0;
  uint16_t servers = 0;
  uint16_t stops = 0;
};

struct ExplorationOptions {
  Rule rule;  // of kExploredWorkers workers
  uint8_t step_count = 2;
  FaultBudget faults;
  // If true, all workers have joined and have the parameters of step 0 at the start.
  bool joined = false;
  // Each shard may receive this event once.
  std::optional<RuleEvent> change;
  // Full rounds wait for sums over all shards. All factors are 1.
  bool sums = false;
  // Breaks a rule on purpose: effects leave the server of shard 0 before the commit of their
  // record.
  bool sent_before_commit = false;
};

class ClusterTransitions {
 public:
  enum class Phase : uint8_t { kJoining, kReading, kPushing, kLeaving, kOver, kDown };

  // The structs below have no padding, so that the bytes of a Cluster identify it.
  // An event in eight bytes.
  struct Message {
    uint32_t gradients;
    uint8_t kind;    // 0: no message; otherwise 1 + the kind of the event
    uint8_t sender;  // incarnation * 4 + worker
    uint8_t step;
    uint8_t late_examples;
  };
  struct PerShard {
    uint32_t residual;  // the gradients in the residual
    uint32_t push;      // the gradients of the push that lacks a verdict
    Message old;        // a message that may arrive once more
    uint8_t pushing;    // whether a push lacks a verdict
    uint8_t push_late;  // the late examples of that push
    uint8_t late_examples;
    uint8_t answered;  // 1 + the largest step for which parameters arrived; 0: none
  };
  struct Process {
    std::array<PerShard, kExploredShards> shards;
    Phase phase;
    uint8_t incarnation;
    uint8_t joined;  // a bit for each joined shard
    uint8_t step;
    uint8_t late;
    uint8_t jump;
    // The largest values in the answers to Joins.
    uint8_t join_next;
    uint8_t join_open;  // whether a shard had an open round; then the step ahead is added
    uint32_t again;     // whether the process must join shard 0 again
  };
  struct Cluster {
    std::array<uint32_t, kExploredShards> shards;   // states of ShardStates, without `records`
    std::array<Message, kExploredWorkers> records;  // of shard 0, not committed, in order
    std::array<uint16_t, kExploredShards> changed;  // whether the shard has the rule event
    uint32_t acknowledged;  // the gradients whose pushes shard 0 has acknowledged before a crash
    std::array<Process, kExploredWorkers> processes;
    FaultBudget left;

    bool operator==(const Cluster& other) const;
  };
  struct Action {
    enum class Kind : uint8_t {
      kDeliver,
      kLose,
      kRepeat,
      kExpire,
      kReturn,
      kOpen,
      kCrash,
      kRestart,
      kStop,
      kCommit,
      kChange,
      kSum,
      kEndServer
    };
    Kind kind = Kind::kDeliver;
    uint8_t worker = 0;
    uint8_t shard = 0;  // kEndServer: the number of records that survive
  };

  explicit ClusterTransitions(const ExplorationOptions& options);

  // Returns the state before all actions.
  Cluster Start();
  // Returns the actions that are possible in CLUSTER.
  std::vector<Action> ActionsIn(const Cluster& cluster) const;
  // Returns whether ACTION is neither a fault nor the start of a process.
  static bool IsProgress(const Cluster& cluster, const Action& action);
  // Returns the state after ACTION. A violation is in violation() or in those of shard_states().
  Cluster After(Cluster cluster, const Action& action);
  // Returns whether all processes have left or are down.
  static bool IsFinal(const Cluster& cluster);
  // Returns whether both shards of CLUSTER have the same frontier and no pending gradient.
  bool EndsAtOneStep(const Cluster& cluster) const;
  // Returns the text of ACTION in CLUSTER.
  std::string Describe(const Cluster& cluster, const Action& action) const;

  const ShardStates& shard_states() const { return shards_; }
  // Returns the newest violation by a process or server, or an empty string.
  const std::string& violation() const { return violation_; }

 private:
  // Returns whether the sum event of the full round of SHARD may arrive.
  bool MaySum(const Cluster& cluster, uint32_t shard) const;
  // Returns the next message of PROCESS for SHARD. `kind` is kOpen if there is none.
  ExploredEvent MessageOf(const Process& process, uint8_t worker, uint32_t shard) const;
  static Message ToMessage(const ExploredEvent& event);
  static ExploredEvent ToEvent(const Message& message);
  // Returns whether the server of SHARD has a log.
  static bool HasLog(const Cluster& cluster, uint32_t shard) {
    return shard == 0 && cluster.left.servers > 0;
  }
  static size_t RecordCount(const Cluster& cluster);
  // Returns whether a message of WORKER waits for a commit at SHARD.
  static bool WaitsForCommit(const Cluster& cluster, uint8_t worker, uint32_t shard);
  // Applies EVENT, or appends it to the log.
  void Arrive(Cluster& cluster, uint32_t shard, const ExploredEvent& event);
  void Commit(Cluster& cluster);
  // Applies the first COUNT records without their effects.
  void Replay(Cluster& cluster, size_t count);
  void EndServer(Cluster& cluster, size_t surviving_records);
  void ApplyEvent(Cluster& cluster, uint32_t shard, const ExploredEvent& event, bool lost);
  void ReceiveVerdict(Cluster& cluster, Process& process, uint32_t shard,
                      const Judgement& judgement);
  void ReceiveJoin(Process& process, const JoinAnswer& answer);
  // Lets PROCESS compute and begin steps until it waits for a message.
  void Continue(Process& process, uint8_t worker) const;
  void Crash(Process& process, uint8_t worker) const;
  // PROCESS needs nothing any more, except messages that may arrive again.
  static void BeginToLeave(Process& process);

  const ExplorationOptions options_;
  ShardStates shards_;
  std::string violation_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_CLUSTER_TRANSITIONS_H_
