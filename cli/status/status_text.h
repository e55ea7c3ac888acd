// StatusText: the status of a job's servers as text for a terminal of 80 columns.
#ifndef THINWIRE_CLI_STATUS_STATUS_TEXT_H_
#define THINWIRE_CLI_STATUS_STATUS_TEXT_H_

#include <span>
#include <string>

#include "absl/time/time.h"
#include "admin/server_history.h"

namespace thinwire {

// Returns facts of the whole job and tables of its workers, servers, pushes and durability. A
// server without an answer has a row without figures.
std::string StatusText(std::span<const ServerHistory> servers, absl::Time now);

}  // namespace thinwire

#endif  // THINWIRE_CLI_STATUS_STATUS_TEXT_H_
