// The status of a server as metrics (docs/metrics.md).
#ifndef THINWIRE_ADMIN_SERVER_METRICS_H_
#define THINWIRE_ADMIN_SERVER_METRICS_H_

#include <span>

#include "absl/time/time.h"
#include "admin/metrics.h"
#include "admin/server_history.h"

namespace thinwire {

// Adds the metrics of one server, which are those of its own process.
void AddServerMetrics(const ServerHistory& server, absl::Time now, MetricList& metrics);

// Adds the metrics of the whole job, which only a process that watches all SERVERS exports.
// STOPPING: the process ends, and SERVERS is empty.
void AddJobMetrics(std::span<const ServerHistory> servers, absl::Time now, bool stopping,
                   MetricList& metrics);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SERVER_METRICS_H_
