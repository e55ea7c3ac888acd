// What a shard and the members of a job add to a StatusReply.
#ifndef THINWIRE_SERVER_EDGE_STATUS_REPORT_H_
#define THINWIRE_SERVER_EDGE_STATUS_REPORT_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/shard.h"
#include "server/edge/membership.h"

namespace thinwire {

struct ShardReport {
  ShardStatus status;
  std::vector<Step> next;  // of each worker
};

// On the shard's strand.
ShardReport ReportOf(ShardId id, size_t value_count, const Shard& shard, uint32_t worker_count);

// Sets REPLY's shards and workers; a worker that never joined is left out.
void FillIn(const std::vector<ShardReport>& reports, const Membership& membership,
            uint32_t worker_count, absl::Time now, StatusReply& reply);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_STATUS_REPORT_H_
