// Traffic: the bytes that a process, or all workers of a run, send and receive, per hour and at a
// price.
//
//   traffic per hour   3.0 GB up, 6.1 GB down
//   bill               0.14 at 0.09 per GB, 0.82 per hour
//
// A network bills each byte once, when it leaves a machine. The bill of a process is thus that of
// the bytes that it sends, and the bill of a run that of all bytes: what workers receive, servers
// have sent.
#ifndef THINWIRE_ADMIN_TRAFFIC_H_
#define THINWIRE_ADMIN_TRAFFIC_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "admin/metrics.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

struct Traffic {
  uint64_t sent_bytes = 0;      // of the messages on data streams, headers included
  uint64_t received_bytes = 0;  // the same
  absl::Duration time;          // in which they were sent and received
  double price_per_gb = 0;      // of 10^9 bytes, in any currency; 0: unknown
  bool whole_run = false;       // false: of one process

  double sent_per_hour() const { return PerHour(static_cast<double>(sent_bytes)); }
  double received_per_hour() const { return PerHour(static_cast<double>(received_bytes)); }
  // Returns the price of the billed bytes; nullopt if it is unknown.
  std::optional<double> bill() const;
  // Returns QUANTITY per hour of `time`; 0 if no time has passed.
  double PerHour(double quantity) const;
};

// Return the traffic of a worker, or of all workers of a run, and of a server.
Traffic TrafficOf(const WorkerCounters& counters, absl::Duration time, double price_per_gb,
                  bool whole_run);
Traffic TrafficOf(const StatusReply& reply, absl::Duration time, double price_per_gb);

// Returns the rows of the example above; without a price only the first one.
std::vector<std::pair<std::string, std::string>> TrafficFacts(const Traffic& traffic);
// Returns all figures; those of the bill are null without a price.
nlohmann::ordered_json TrafficJson(const Traffic& traffic);
void AddTrafficMetrics(const Traffic& traffic, MetricList& metrics);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_TRAFFIC_H_
