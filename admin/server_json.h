// The status of a job's servers as JSON.
#ifndef THINWIRE_ADMIN_SERVER_JSON_H_
#define THINWIRE_ADMIN_SERVER_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "absl/time/time.h"
#include "admin/server_history.h"

namespace thinwire {

// Returns {"servers": [{"server", "answered_seconds_ago", "status": StatusReply as protobuf JSON}],
// "summary": {...}}.
nlohmann::ordered_json ServersJson(std::span<const ServerHistory> servers, absl::Time now);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SERVER_JSON_H_
