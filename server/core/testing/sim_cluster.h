// SimCluster: a whole cluster in one thread, from one seed. Shards, worker processes, a wire
// between them, and trouble: letters lost, repeated and overtaken, processes that die, processes
// that are only believed dead, leases that one shard alone gives up. After the trouble every worker
// must come to its last step, and the books must be right.
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
#include "server/core/testing/histories.h"
#include "server/core/testing/sim_books.h"
#include "server/core/testing/sim_client.h"
#include "server/core/testing/sim_wire.h"

namespace thinwire {

// What happened in a run, to see that there was trouble at all.
struct SimCounts {
  uint64_t deaths = 0;
  uint64_t expirations = 0;
  uint64_t fenced = 0;
  uint64_t late = 0;
  uint64_t accepted = 0;
  uint64_t updates = 0;
  uint64_t deltas = 0;  // that reads were answered with
  uint64_t wholes = 0;
};

class SimCluster {
 public:
  SimCluster(const Rule& rule, uint64_t seed);

  // Runs to the end. Returns what is wrong, a line each: nothing if all is right.
  std::string Run();
  const SimCounts& counts() const { return counts_; }

 private:
  struct Process {
    std::unique_ptr<SimClient> client;
    bool killed = false;  // by trouble: it need not finish
  };
  // What a shard's server knows of a worker's lease.
  struct Lease {
    Incarnation incarnation;  // 0: nobody's
    uint64_t heard = 0;
    bool expired = false;
  };

  void StartProcess(uint32_t worker);
  void StartDue();
  void MakeTrouble();
  void EndTrouble();
  void LoseProcess(uint32_t worker);
  void Deliver(const ToShard& letter);
  void Deliver(ToWorker letter);
  void ExpireLeases();
  void Expire(uint32_t shard, uint32_t worker);
  void SendVerdict(uint32_t shard, const Judgement& judgement);
  Effects ApplyTo(uint32_t shard, const Event& event);
  bool Over() const;
  std::string Complaints();
  std::string Stuck() const;

  const Rule rule_;
  Dice dice_;
  const uint32_t shard_count_;
  const std::optional<PublishOptions> publish_;
  const bool lazy_slots_;
  const Step last_;
  const uint64_t trouble_ticks_;
  const Schedule schedule_ = ConstantRate();
  uint64_t now_ = 0;
  Wire<ToShard> to_shards_;
  Wire<ToWorker> to_workers_;
  std::vector<ShardBooks> books_;
  std::vector<std::unique_ptr<RecordingOptimizer>> optimizers_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<uint64_t> open_at_;              // by shard: when its patience with the start ends
  std::vector<std::vector<Lease>> leases_;     // by shard and worker
  std::vector<Incarnation> incarnations_;      // by worker, as the lead gives them
  std::vector<std::vector<uint64_t>> starts_;  // by worker: the ticks of processes to come
  std::vector<Process> processes_;
  SimCounts counts_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_CLUSTER_H_
