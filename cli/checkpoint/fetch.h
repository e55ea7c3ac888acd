// Makes a state directory from the checkpoints in a bucket (docs/mirror.md).
#ifndef THINWIRE_CLI_CHECKPOINT_FETCH_H_
#define THINWIRE_CLI_CHECKPOINT_FETCH_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/checkpoint/bucket.h"
#include "common/base/ids.h"

namespace thinwire {

// Copies the folders of all servers, or only that of SERVER, from BUCKET to DIR, and checks every
// byte. Servers that are started with DIR then continue from the newest checkpoints. With an event
// log, which BUCKET lacks, these become the only ones, as after RestoreSavedJob (saved_job.h).
// Returns one line about the result. Prints a warning to ERR for each older checkpoint that is
// damaged, and leaves it out. Changes nothing in DIR after an error. Errors: those of Bucket; NotFound
// if BUCKET has no checkpoint; DataLoss, with the file and the cause, if the newest one is damaged;
// FailedPrecondition if DIR has state, or if the servers have no checkpoints that belong together;
// errors of the file system.
absl::StatusOr<std::string> FetchState(const std::string& dir, std::optional<ServerId> server,
                                       Bucket& bucket, std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_FETCH_H_
