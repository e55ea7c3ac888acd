// ShardObserver: hears what happens to the shards of a server, for tests that check every event.
#ifndef THINWIRE_SERVER_SHARDS_SHARD_OBSERVER_H_
#define THINWIRE_SERVER_SHARDS_SHARD_OBSERVER_H_

#include "common/base/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/durable/event_log.h"

namespace thinwire {

// The strand of the shard calls the functions or, before a recovered server uses its strands, the
// thread that recovers it.
class ShardObserver {
 public:
  virtual ~ShardObserver() = default;

  // SHARD has applied EVENT with EFFECTS, which have not left the server yet. SEQUENCE: the durable
  // record of the event; 0 without an event log. A recovery replays records, so a later process may
  // repeat the calls with the same records.
  virtual void OnApplied(ShardId id, const Event& event, const Effects& effects, const Shard& shard,
                         LogSequence sequence) = 0;
  // SHARD has the state of a checkpoint, which contains the records up to APPLIED.
  virtual void OnRestored(ShardId id, const Shard& shard, LogSequence applied) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_SHARD_OBSERVER_H_
