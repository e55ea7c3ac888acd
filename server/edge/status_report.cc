#include "server/edge/status_report.h"

#include <algorithm>

namespace thinwire {

ShardReport ReportOf(ShardId id, size_t value_count, const Shard& shard, uint32_t worker_count) {
  ShardReport report;
  report.status.set_shard(id.value);
  report.status.set_values(value_count);
  report.status.set_open(shard.open());
  report.status.set_version(shard.version().value);
  report.status.set_frontier(shard.frontier().value);
  for (uint32_t w = 0; w < worker_count; ++w) report.next.push_back(shard.next(WorkerId{w}));
  return report;
}

void FillIn(const std::vector<ShardReport>& reports, const Membership& membership,
            uint32_t worker_count, absl::Time now, StatusReply& reply) {
  for (const ShardReport& report : reports) *reply.add_shards() = report.status;
  for (uint32_t w = 0; w < worker_count; ++w) {
    const Member& member = membership.of(WorkerId{w});
    if (member.incarnation.value == 0) continue;
    WorkerStatus& status = *reply.add_workers();
    status.set_worker(w);
    status.set_incarnation(member.incarnation.value);
    status.set_live(member.holds());
    status.set_left(member.left);
    status.set_heard_seconds_ago(absl::ToDoubleSeconds(now - member.heard));
    if (reports.empty()) continue;
    Step smallest = reports[0].next[w];
    for (const ShardReport& report : reports) smallest = std::min(smallest, report.next[w]);
    status.set_next(smallest.value);
  }
}

}  // namespace thinwire
