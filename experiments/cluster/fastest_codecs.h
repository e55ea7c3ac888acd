// The codecs that a real worker chooses with `push: fastest` (client/encode/codec_choice.h),
// computed from the costs and the links of simulated machines.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_FASTEST_CODECS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_FASTEST_CODECS_H_

#include <vector>

#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "experiments/cluster/run.h"

namespace thinwire::lab {

// Returns the fastest codec of each shard among fp32 and the candidates of the job. The costs are
// those of the largest shard of each group of tensors. The goodput of a worker is the rate of its
// link, or its share of the links of the servers if that is smaller.
std::vector<CodecSpec> FastestCodecs(const RunSpec& spec, const Partition& partition);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_FASTEST_CODECS_H_
