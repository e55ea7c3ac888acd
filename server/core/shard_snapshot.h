// ShardSnapshot is the whole state of a shard between two updates. A shard that is restored from it
// continues with the same effects and bits as the saved shard (Shard::Save, Shard::Restore).
//
// It does not contain derived state: parameters that are encoded for readers, predictions that only
// affect speed, and the log of published deltas. A value type whose copies share the arrays.
#ifndef THINWIRE_SERVER_CORE_SHARD_SNAPSHOT_H_
#define THINWIRE_SERVER_CORE_SHARD_SNAPSHOT_H_

#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/spec/rule.h"
#include "server/core/event.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/store.h"
#include "server/core/worker_table.h"

namespace thinwire {

struct ShardSnapshot {
  bool open = false;
  bool start_timed_out = false;
  Step frontier;
  std::optional<Rule> rule;            // nullopt: the shard's first rule
  std::optional<RuleEvent> next_rule;  // a rule that is not in force yet
  std::vector<WorkerRecord> workers;   // one element per worker number
  StoreSnapshot store;
  std::optional<PublishedSnapshot> published;  // nullopt: the job publishes no deltas
  ByteChain mean_squares;                      // MeanSquares::Save(); empty if the job has none

  bool operator==(const ShardSnapshot&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SHARD_SNAPSHOT_H_
