// FrameCostsOf: the time that workers and servers take to encode and decode their messages.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_FRAME_COSTS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_FRAME_COSTS_H_

#include <map>

#include "common/base/ids.h"
#include "common/model/partition.h"
#include "experiments/cluster/run.h"
#include "sim/wires.h"

namespace thinwire::lab {

// Returns the costs of the codecs; none if the machines of SPEC state none. ENCODED: the newest
// version of each shard that its server has encoded. PARTITION and ENCODED must outlive the result.
sim::FrameCosts FrameCostsOf(const RunSpec& spec, const Partition& partition,
                             std::map<ShardId, Version>& encoded);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_FRAME_COSTS_H_
