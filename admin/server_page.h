// The status of a job's servers as tables and as a page.
#ifndef THINWIRE_ADMIN_SERVER_PAGE_H_
#define THINWIRE_ADMIN_SERVER_PAGE_H_

#include <span>
#include <string>

#include "absl/time/time.h"
#include "admin/job_summary.h"
#include "admin/server_history.h"
#include "admin/status_table.h"

namespace thinwire {

// Return a row for each worker that ever joined, and for each server.
StatusTable WorkerTable(std::span<const ServerHistory> servers, absl::Time now);
StatusTable ServerTable(std::span<const ServerHistory> servers, absl::Time now);
// Returns a row for each server with an event log or checkpoints.
StatusTable DurabilityTable(std::span<const ServerHistory> servers, absl::Time now);
// Returns the bytes of gradients and parameters beside an estimate of those in fp32.
StatusTable BytesTable(const JobSummary& summary);

// Returns the body of a status page, with the curves of the training if WITH_CURVES.
std::string ServersHtml(std::span<const ServerHistory> servers, absl::Time now,
                        bool with_curves = true);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SERVER_PAGE_H_
