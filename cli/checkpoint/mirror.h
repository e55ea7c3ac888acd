// Mirrors the checkpoints of a state directory in a bucket, and fetches them (docs/mirror.md).
//
//   BUCKET/job.textproto             the job file, if the state directory has one
//   BUCKET/server-0/checkpoint-.../  the checkpoints of server 0, with the files that they have on disk
//   BUCKET/server-0/LATEST           names the newest checkpoint that is complete in the bucket
//   BUCKET/server-0/lead             and other small files beside the checkpoints
//
// Each machine mirrors the servers in its own state directory. They share the bucket.
#ifndef THINWIRE_CLI_CHECKPOINT_MIRROR_H_
#define THINWIRE_CLI_CHECKPOINT_MIRROR_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/checkpoint/bucket.h"
#include "common/base/ids.h"

namespace thinwire {

// Copies all complete checkpoints in DIR to BUCKET, also while servers write and remove checkpoints.
// LATEST follows the files that it names, so an interrupted copy leaves the older checkpoints valid.
// Then removes checkpoints from BUCKET that DIR no longer has and that are older than the newest
// ones that belong together. Returns one line about the result. Prints a warning to ERR if BUCKET has
// no checkpoints that belong together. Errors: those of Bucket; NotFound if DIR has no checkpoint;
// FailedPrecondition if BUCKET has checkpoints of another run; Unavailable if another process mirrors
// DIR; errors of the file system.
absl::StatusOr<std::string> MirrorState(const std::string& dir, Bucket& bucket, std::ostream& err);

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

#endif  // THINWIRE_CLI_CHECKPOINT_MIRROR_H_
