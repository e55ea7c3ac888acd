// ServerShards is what the protocols of a job do with the shards of their server: ModelSlot has
// shards, the tests of protocols have none.
#ifndef THINWIRE_SERVER_SHARDS_SERVER_SHARDS_H_
#define THINWIRE_SERVER_SHARDS_SERVER_SHARDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "server/core/event.h"

namespace thinwire {

// Thread-safe.
class ServerShards {
 public:
  virtual ~ServerShards() = default;

  // Returns whether a worker has defined the model.
  virtual bool has_model() const = 0;
  // Returns the division of the model among the servers. It never changes. REQUIRES: has_model().
  virtual const Partition& partition() const = 0;
  // Return the progress of the shards after their last events. The largest frontier, 0 without
  // shards; the largest `next` of all workers (docs/glossary.md), nullopt without shards.
  virtual Step frontier() const = 0;
  virtual std::optional<Step> LargestNext() const = 0;

  // Reserves memory for the connections of WORKERS workers, instead of the earlier number. Errors:
  // InvalidArgument if the model with these workers does not fit into the plan; nothing changes
  // then. REQUIRES: has_model().
  virtual absl::Status Reserve(uint32_t workers) = 0;
  // Submits EVENT_OF(shard) to every shard and calls THEN when all have applied it, on a strand, or
  // within this call if there is no shard.
  virtual void ApplyToEach(const std::function<Event(ShardId)>& event_of,
                           std::function<void()> then) = 0;
  // Submits EVENT to every shard.
  void ApplyToAll(const Event& event, std::function<void()> then) {
    ApplyToEach([&event](ShardId) { return event; }, std::move(then));
  }
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_SERVER_SHARDS_H_
