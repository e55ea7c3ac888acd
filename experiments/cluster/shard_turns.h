// ShardTurns imposes a staleness on one shard. The workers push in turns, and every gradient is
// computed from the parameters of exactly STALENESS turns before its own:
//
//   turn of WORKER's push of STEP     STEP * workers + WORKER
//   parameters of the push            those after max(0, turn - STALENESS) turns
//
// A push that arrives before its turn waits. A read is answered when its parameters exist, with
// older parameters than the newest if necessary. The shard itself is the real one: it counts the
// staleness. If a push makes no update (it has no examples or was refused), the staleness of the
// pushes that follow is one less. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_SHARD_TURNS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_SHARD_TURNS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/publish/version_log.h"
#include "server/core/shard.h"
#include "server/edge/stream/published_slots.h"

namespace thinwire::lab {

class ShardTurns {
 public:
  // The shard answers reads with whole parameters in the codec PULL, or with deltas if PULL is
  // nullopt. SHARD must outlive this object. REQUIRES: the shard is seeded and publishes every
  // update.
  ShardTurns(uint64_t staleness, uint32_t worker_count, std::optional<CodecId> pull, Shard& shard);

  // Takes a push that has arrived and returns the pushes whose turn has come, in their order.
  std::vector<PushEvent> Arrived(PushEvent push);

  struct Answer {
    ReadAnswer read;
    std::shared_ptr<PublishedSlots> slots;  // has the parameters of the answer
  };
  // Takes the reads that the shard has released by EVENT, and returns those whose parameters exist.
  std::vector<Answer> Applied(const Event& event, const std::vector<ReadAnswer>& released);

 private:
  // The parameters after a turn. With deltas: the delta of the turn, or all values if the shard has
  // published no delta. A turn without an update has the delta of the turn before it.
  struct Past {
    std::shared_ptr<const PublishedDelta> delta;
    EncodedParameters parameters;  // without deltas
  };

  uint64_t TurnOf(WorkerId worker, Step step) const {
    return step.value * worker_count_ + worker.value;
  }
  void KeepNewest();
  std::shared_ptr<const PublishedDelta> NewestDelta();
  // Returns the parameters after TURN_COUNT turns, for a reader that holds version HELD.
  std::shared_ptr<PublishedSlots> SlotsAfter(uint64_t turn_count,
                                             std::optional<Version> held) const;

  const uint64_t staleness_;
  const uint64_t worker_count_;
  const std::optional<CodecId> pull_;
  Shard& shard_;
  uint64_t next_arrival_ = 0;            // the turn of the next push that Arrived() returns
  std::map<uint64_t, PushEvent> early_;  // by turn
  uint64_t turn_count_ = 0;              // turns that the shard has applied
  // The newest last. With deltas, as many that every worker finds those since its last turn.
  std::deque<Past> past_;
  std::multimap<uint64_t, ReadAnswer> waiting_;  // by the number of turns that they wait for
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_SHARD_TURNS_H_
