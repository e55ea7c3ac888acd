// ClusterObserver: hears what happens to the servers and the workers of a simulated cluster. A
// ledger (cluster_ledger.h) checks it; the laboratory records it.
#ifndef THINWIRE_SIM_CLUSTER_OBSERVER_H_
#define THINWIRE_SIM_CLUSTER_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/encode/residual_file.h"
#include "client/replica/replica.h"
#include "common/base/ids.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/shards/shard_observer.h"

namespace thinwire::sim {

// By default, the functions do nothing.
class ClusterObserver : public ShardObserver {
 public:
  // Calls TRACE with one line per event.
  virtual void Trace(std::function<void(const std::string&)> /*trace*/) {}
  // Adds a line to the trace.
  virtual void Tell(const std::string& /*text*/) const {}

  // A process of SERVER starts, and then has started or has failed to. CONTINUES: it continues from
  // the state in its files under GENERATION, if that is a checkpoint. A process that awaits a
  // rollback does not.
  virtual void BeginStart(ServerId /*server*/) {}
  virtual void EndStart(ServerId /*server*/, bool /*continues*/, Generation /*generation*/) {}
  virtual void CancelStart(ServerId /*server*/) {}
  // The process of SERVER has ended.
  virtual void EndServer(ServerId /*server*/) {}

  void OnApplied(ShardId, const Event&, const Effects&, const Shard&, LogSequence) override {}
  void OnRestored(ShardId, const Shard&, LogSequence) override {}

  // A process begins, at its first step or after all servers have gone back, with RESIDUALS.
  virtual void Begin(WorkerId /*worker*/, Incarnation /*incarnation*/,
                     std::span<const client::ShardResidualsView> /*residuals*/) {}
  // The worker has saved, or has left at its end, RESIDUALS that belong before each of the steps from
  // FIRST to LAST. A later process may begin with them when a server expects such a step. FIRST is
  // nullopt if the process has pushed nothing: the residuals are those with which it has begun.
  virtual void Keep(WorkerId /*worker*/, Incarnation /*incarnation*/, std::optional<Step> /*first*/,
                    Step /*last*/, std::span<const client::ShardResidualsView> /*residuals*/) {}
  // FRAME has arrived at a process.
  virtual void OnFrame(WorkerId /*worker*/, Incarnation /*incarnation*/,
                       const ServerFrame& /*frame*/) {}
  // A process has produced GRADIENT, one array per tensor, of EXAMPLES examples.
  virtual void AddProduced(WorkerId /*worker*/, Incarnation /*incarnation*/,
                           std::span<const std::vector<float>> /*gradient*/,
                           uint32_t /*examples*/) {}
  // All pushes of a process have verdicts; RESIDUALS is empty if some have none. With REPLICA, the
  // parameters for the next step have arrived, and the step begins. LOST_RETURNS: the pushes of the
  // process so far whose unselected values are lost, because only a later list of gTop-k has
  // arrived.
  virtual void Check(WorkerId /*worker*/, Incarnation /*incarnation*/,
                     std::span<const client::ShardResidualsView> /*residuals*/,
                     uint64_t /*lost_returns*/, client::Replica* /*replica*/) {}
  // A worker has the verdicts of its last step, or cannot go on because of FAILURE.
  virtual void OnTrained(WorkerId /*worker*/) {}
  virtual void OnFailed(WorkerId /*worker*/, const absl::Status& /*failure*/) {}
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_CLUSTER_OBSERVER_H_
