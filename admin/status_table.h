// StatusTable is a table for a status page or for a terminal.
#ifndef THINWIRE_ADMIN_STATUS_TABLE_H_
#define THINWIRE_ADMIN_STATUS_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/worker_event.pb.h"

namespace thinwire {

// Every row has as many cells as `columns`.
struct StatusTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

// Returns the HTML of TABLE below a heading.
std::string SectionHtml(const std::string& heading, const StatusTable& table);

// Bytes of payloads, and those of the same values in fp32.
struct TrafficBytes {
  uint64_t payload_bytes = 0;
  uint64_t fp32_bytes = 0;
};

// Returns a table of the bytes of both directions. ESTIMATED: the bytes in fp32 are estimates.
StatusTable BytesTable(const TrafficBytes& gradients, const TrafficBytes& parameters,
                       bool estimated);
// Returns the table of the bytes that workers have counted.
StatusTable BytesTable(const WorkerCounters& counters);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_STATUS_TABLE_H_
