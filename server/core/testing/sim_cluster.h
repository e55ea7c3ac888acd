// SimCluster runs a whole cluster in one thread, from one seed: shards, worker processes and the
// network between them, with faults. Messages are lost, duplicated and reordered; processes die, or
// continue although a newer process replaces them; leases expire at a single shard. After the
// faults end, every worker must reach its last step, and no gradient may be missing from the
// ledgers (sim_ledger.h).
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_CLUSTER_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/spec/rule.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "server/core/testing/random_events.h"
#include "server/core/testing/sim_client.h"
#include "server/core/testing/sim_ledger.h"
#include "server/core/testing/sim_network.h"

namespace thinwire {

// Counts the events of a run, so that tests can assert that faults happened.
struct SimCounts {
  uint64_t deaths = 0;
  uint64_t expirations = 0;
  uint64_t fenced = 0;
  uint64_t late = 0;
  uint64_t accepted = 0;
  uint64_t updates = 0;
  uint64_t delta_answers = 0;  // number of reads that were answered with deltas
  uint64_t full_answers = 0;   // number of reads that were answered with all published values
};

class SimCluster {
 public:
  SimCluster(const Rule& rule, uint64_t seed);

  // Runs the simulation to its end. Returns one line per violation of the rule, or an empty string.
  std::string Run();
  const SimCounts& counts() const { return counts_; }

 private:
  struct Process {
    std::unique_ptr<SimClient> client;
    // True if a fault killed the process, which then need not reach its last step.
    bool killed = false;
  };
  // A worker's lease at one shard.
  struct Lease {
    Incarnation incarnation;  // 0: no process holds the lease
    uint64_t heard = 0;
    bool expired = false;
  };

  void StartProcess(uint32_t worker);
  void StartDue();
  void InjectFaults();
  void EndFaults();
  void LoseProcess(uint32_t worker);
  void Deliver(const MessageToShard& message);
  void Deliver(MessageToWorker message);
  void ExpireLeases();
  void Expire(uint32_t shard, uint32_t worker);
  void SendVerdict(uint32_t shard, const Judgement& judgement);
  Effects ApplyTo(uint32_t shard, const Event& event);
  bool Over() const;
  std::string Violations();
  std::string DescribeStuck() const;

  const Rule rule_;
  SeededRandom random_;
  const uint32_t shard_count_;
  const std::optional<PublishOptions> publish_;
  const bool lazy_slots_;
  const Step last_;
  const uint64_t fault_ticks_;
  const Schedule schedule_ = ConstantRate();
  uint64_t now_ = 0;
  SimNetwork<MessageToShard> to_shards_;
  SimNetwork<MessageToWorker> to_workers_;
  std::vector<ShardLedger> ledgers_;
  std::vector<std::unique_ptr<RecordingOptimizer>> optimizers_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<uint64_t> open_at_;           // for each shard: the tick of its start timeout
  std::vector<std::vector<Lease>> leases_;  // for each shard: the leases of all workers
  std::vector<Incarnation> incarnations_;   // for each worker: its newest assigned incarnation
  // For each worker: the ticks at which its next processes start.
  std::vector<std::vector<uint64_t>> starts_;
  std::vector<Process> processes_;
  SimCounts counts_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_CLUSTER_H_
