// ClusterLedger: the ledgers of all shards of a simulated cluster (shard_ledger.h). It observes the
// shards inside the real jobs, the frames that arrive at the workers, and the workers.
#ifndef THINWIRE_SIM_CLUSTER_LEDGER_H_
#define THINWIRE_SIM_CLUSTER_LEDGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/encode/residual_file.h"
#include "client/replica/replica.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "proto/frame.h"
#include "server/core/optimizer/group_updates.h"
#include "sim/cluster_observer.h"
#include "sim/shard_ledger.h"

namespace thinwire::sim {

// Counts of events and checks, with which tests assert that they happened.
struct LedgerCounts {
  uint64_t accepted = 0;
  uint64_t late = 0;
  uint64_t fenced = 0;
  uint64_t updates = 0;
  uint64_t clipped = 0;  // updates with a factor below 1
  uint64_t shared = 0;   // updates with sums over a tensor
  uint64_t undone = 0;   // pushes that a rollback undid and that were not judged again
  uint64_t rule_changes = 0;
  uint64_t delta_answers = 0;  // frames with published parameters, as deltas or as all values
  uint64_t full_answers = 0;
  uint64_t split_leases = 0;        // that ended at one server and not at another
  uint64_t restored_residuals = 0;  // of shards
  uint64_t codecs = 0;              // the largest number of codecs at one shard
  uint64_t checked_masses = 0;
  uint64_t checked_replicas = 0;

  void Add(const LedgerCounts& other);
  friend std::ostream& operator<<(std::ostream& out, const LedgerCounts& counts);
};

// Not thread-safe.
class ClusterLedger final : public ClusterObserver {
 public:
  // INITIAL: one row-major array per tensor. PARTITION must outlive the ledger. REQUIRES: SPEC has no
  // problem.
  ClusterLedger(const JobSpec& spec, const Partition& partition,
                std::span<const std::vector<float>> initial);

  void Trace(std::function<void(const std::string&)> trace) override { trace_ = std::move(trace); }
  void Tell(const std::string& text) const override {
    if (trace_ != nullptr) trace_(text);
  }
  void BeginStart(ServerId server) override;
  void EndStart(ServerId server, bool continues, Generation generation) override;
  void CancelStart(ServerId server) override;
  void EndServer(ServerId server) override;
  void OnApplied(ShardId id, const Event& event, const Effects& effects, const Shard& shard,
                 LogSequence sequence) override;
  void OnRestored(ShardId id, const Shard& shard, LogSequence applied) override;
  void Begin(WorkerId worker, Incarnation incarnation,
             std::span<const client::ShardResidualsView> residuals) override;
  void Keep(WorkerId worker, Incarnation incarnation, std::optional<Step> first, Step last,
            std::span<const client::ShardResidualsView> residuals) override;
  void OnFrame(WorkerId worker, Incarnation incarnation, const ServerFrame& frame) override;
  void AddProduced(WorkerId worker, Incarnation incarnation,
                   std::span<const std::vector<float>> gradient, uint32_t examples) override;
  void Check(WorkerId worker, Incarnation incarnation,
             std::span<const client::ShardResidualsView> residuals, uint64_t lost_returns,
             client::Replica* replica) override;

  // Returns the newest rule of all shards, or nullopt if they differ or a server has no process.
  std::optional<Rule> NewestRule() const;
  // Records a violation if HOLDS is false.
  void Require(bool holds, const std::string& claim);
  bool violated() const;
  // Makes the final checks of the shards whose servers run. Returns one line per violation, or an
  // empty string. Call after the last event.
  std::string Close();
  LedgerCounts counts() const;

 private:
  // A shard's process.
  struct Host {
    const Shard* shard = nullptr;
    bool restored = false;    // from a checkpoint, in this process
    LogSequence applied = 0;  // the newest record that this process has seen
    size_t replayed = 0;      // the number of records that the recovery has applied
  };
  void CheckRestored(WorkerId worker, Incarnation incarnation, ShardId shard,
                     std::span<const float> residual);
  // Tells with which state SERVER begins.
  void TellState(ServerId server) const;
  // Counts the leases that end at SERVER while the process stays live at another server.
  void FollowLease(ServerId server, const Event& event);
  // Returns the values of SHARD, gathered from one array per tensor.
  template <typename TensorOf>
  std::vector<float> Gather(ShardId shard, TensorOf tensor_of) const;

  const Partition& partition_;
  std::function<void(const std::string&)> trace_;  // null: no trace
  const double clip_norm_;
  const bool logs_;
  const std::vector<GroupUpdate> updates_;
  std::vector<ShardLedger> ledgers_;  // by shard
  std::vector<Host> hosts_;           // by shard
  std::vector<ShardLedger> before_;   // the ledgers before the start of a process
  // The parameters that have arrived at a process, by their versions.
  std::map<std::tuple<WorkerId, Incarnation, ShardId, Version>, Generation> delivered_;
  // The residuals that may be restored: by worker, shard and step, of several processes.
  std::map<std::tuple<WorkerId, ShardId, Step>, std::vector<std::vector<float>>> kept_;
  // The step that the server expected of a process: when it joined, and when it began.
  std::map<std::tuple<WorkerId, Incarnation, ShardId>, Step> joined_;
  std::map<std::tuple<WorkerId, Incarnation, ShardId>, Step> begun_;
  // By process: the servers where it is live, and those where its lease has ended.
  std::map<std::pair<WorkerId, Incarnation>, std::set<ServerId>> live_, expired_;
  uint64_t split_leases_ = 0;
  uint64_t restored_residuals_ = 0;
  std::map<std::pair<WorkerId, Incarnation>, uint64_t> lost_returns_;
  uint64_t delta_answers_ = 0;
  uint64_t full_answers_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_CLUSTER_LEDGER_H_
