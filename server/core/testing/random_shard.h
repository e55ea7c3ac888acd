// Draws random settings of a shard for tests that must pass with every kind of shard state: any
// mode, optimizer, sparse update, kind of published parameters, and staleness policy except dcasgd.
#ifndef THINWIRE_SERVER_CORE_TESTING_RANDOM_SHARD_H_
#define THINWIRE_SERVER_CORE_TESTING_RANDOM_SHARD_H_

#include <cstddef>
#include <memory>

#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/shard.h"
#include "server/core/testing/random_events.h"

namespace thinwire {

struct RandomShard {
  ShardOptions options;
  OptimizerKind kind = OptimizerKind::kSgd;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<const Schedule> schedule;

  // Returns a new shard with these settings, which must outlive it.
  std::unique_ptr<Shard> Make() const {
    return std::make_unique<Shard>(options, *optimizer, *schedule);
  }
  // Draws the next event for SHARD, with payloads of options.value_count values. In a job without
  // published parameters, all reads request masters.
  Event NextEvent(RandomEvents& events, const Shard& shard) const;
};

RandomShard DrawShard(SeededRandom& random, size_t value_count);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_RANDOM_SHARD_H_
