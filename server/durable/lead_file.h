// LeadFile: the file `lead` in the folder of server 0, the lead, with those of its decisions that a
// lead which continues from a checkpoint must not forget: LeadState in proto/state.proto. The
// checkpoint may be older than these decisions.
#ifndef THINWIRE_SERVER_DURABLE_LEAD_FILE_H_
#define THINWIRE_SERVER_DURABLE_LEAD_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/state.pb.h"
#include "server/durable/files.h"

namespace thinwire {

// Replaces the file in FOLDER by STATE, atomically and durably. Errors: those of the file system.
absl::Status WriteLeadState(Files& files, const std::string& folder, const LeadState& state);

// Returns the state in FOLDER; nullopt if there is none of RUN. The deals are valid. The caller must
// validate the rule and the numbers of the workers. Errors: DataLoss if the file is damaged; errors
// of the file system.
absl::StatusOr<std::optional<LeadState>> ReadLeadState(Files& files, const std::string& folder,
                                                       RunId run);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_LEAD_FILE_H_
