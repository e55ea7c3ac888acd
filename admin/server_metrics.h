// The status of a server as metrics (docs/metrics.md).
#ifndef THINWIRE_ADMIN_SERVER_METRICS_H_
#define THINWIRE_ADMIN_SERVER_METRICS_H_

#include "absl/time/time.h"
#include "admin/metrics.h"
#include "admin/server_history.h"

namespace thinwire {

// Adds the metrics of one server, which are those of its own process.
void AddServerMetrics(const ServerHistory& server, absl::Time now, MetricList& metrics);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SERVER_METRICS_H_
