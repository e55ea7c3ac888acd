// RelayLead gathers the full rounds of the shards of a job with one server for a RoundRelay, and
// gives its values to the shards (Shard::CopyRelayed, UpdateEvent).
//
//   every shard: full round -> mean of its gradients -> RoundRelay::Pass -> UpdateEvent at every shard
//
// Lives on the job's control thread, except for Applied.
#ifndef THINWIRE_SERVER_PROTOCOLS_RELAY_RELAY_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_RELAY_RELAY_LEAD_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/memory/float_array.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"
#include "server/core/shard.h"
#include "server/protocols/protocol.h"
#include "server/protocols/relay/round_relay.h"
#include "server/protocols/state/membership.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

class RelayLead final : public Protocol {
 public:
  // The arguments must outlive this object, and RELAY calls no `done` after its end.
  RelayLead(const Membership& membership, ModelSlot& model, Executor& control, RoundRelay& relay)
      : membership_(membership), model_(model), control_(control), relay_(relay) {}

  // An event at SHARD had EFFECTS. Called on the strand of the shard. Thread-safe.
  void Applied(ShardId shard, const Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);
  // Learns the Join of a worker.
  void Joined(const JoinRequest& request);
  // Tells the relay when no worker is live any more.
  void Tick(absl::Time now) override;
  void Stop(const absl::Status& /*status*/) override { stopped_ = true; }

 private:
  using ShardSteps = std::map<ShardId, Step>;

  // All shards are full, in the rounds STEPS.
  void Gather(ShardSteps steps);
  void Pass(const ShardSteps& steps, const std::vector<RelayedPart>& parts);
  // Gives VALUES to the shards. Called on a thread of the relay.
  void Update(const ShardSteps& steps, const TensorValues& values);
  void PauseIfIdle();

  const Membership& membership_;
  ModelSlot& model_;
  Executor& control_;
  RoundRelay& relay_;

  absl::Mutex mu_;
  ShardSteps full_ ABSL_GUARDED_BY(mu_);  // the shards that have become full

  JoinRequest join_;            // the newest one; empty: none yet
  std::function<void()> held_;  // passes a round as soon as a worker joins; null: none
  // One array per tensor. While a round is under way, the shards write it, and then the relay reads it.
  std::vector<FloatArray> tensors_;
  int under_way_count_ = 0;  // rounds from Gather to the end of Update
  bool active_ = false;     // a worker was live since the last call of RoundRelay::Pause
  bool stopped_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RELAY_RELAY_LEAD_H_
