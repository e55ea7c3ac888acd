// RuleFile: the file `rule` in the folder of server 0, the lead, with the newest change of the
// consistency rule and its number. With durability: checkpoint, a lead in mode ssp or async goes on
// alone from a checkpoint, which may be older than this change.
#ifndef THINWIRE_SERVER_DURABLE_RULE_FILE_H_
#define THINWIRE_SERVER_DURABLE_RULE_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/durable/files.h"

namespace thinwire {

// Replaces the file in FOLDER by REQUEST, in which the lead passes the rule on, atomically and
// durably. Errors: those of the file system.
absl::Status WriteRule(Files& files, const std::string& folder, const SetModeRequest& request);

// Returns the request in FOLDER; nullopt if there is none of RUN. The caller must validate the
// request. Errors: DataLoss if the file is damaged; errors of the file system.
absl::StatusOr<std::optional<SetModeRequest>> ReadRule(Files& files, const std::string& folder,
                                                       RunId run);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_RULE_FILE_H_
