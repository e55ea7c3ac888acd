// Mirrors the checkpoints of a state directory in a bucket (docs/mirror.md). fetch.h is the way back.
//
//   BUCKET/job.textproto             the job file, if the state directory has one
//   BUCKET/server-0/checkpoint-.../  the checkpoints of server 0, with the files that they have on disk
//   BUCKET/server-0/LATEST           names the newest checkpoint that is complete in the bucket
//   BUCKET/server-0/lead             and other small files beside the checkpoints
//
// Each machine mirrors the servers in its own state directory. They share the bucket.
#ifndef THINWIRE_CLI_CHECKPOINT_MIRROR_H_
#define THINWIRE_CLI_CHECKPOINT_MIRROR_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/checkpoint/bucket.h"
#include "server/durable/files.h"

namespace thinwire {

// The checkpoints from which the servers of a job can continue together.
struct CommonCheckpoints {
  std::vector<std::string> names;  // by server number; "" for a server without shards
  std::string steps;               // "step 40", "steps 38 to 41"
};

// Returns the newest such checkpoints by the manifests in DIR: those of ChooseCheckpoints (saved_job.h).
// With an event log, which a mirror lacks, these are the newest ones of each server. Errors: those of
// ChooseCheckpoints.
absl::StatusOr<CommonCheckpoints> FindCommonCheckpoints(Files& files, const std::string& dir);

// Copies all complete checkpoints in DIR to BUCKET, also while servers write and remove checkpoints.
// LATEST follows the files that it names, so an interrupted copy leaves the older checkpoints valid.
// Then removes checkpoints from BUCKET that DIR no longer has and that are older than the newest
// ones that belong together. Returns one line about the result. Prints a warning to ERR if BUCKET has
// no checkpoints that belong together. Errors: those of Bucket; NotFound if DIR has no checkpoint;
// FailedPrecondition if BUCKET has checkpoints of another run; Unavailable if another process mirrors
// DIR; errors of the file system.
absl::StatusOr<std::string> MirrorState(const std::string& dir, Bucket& bucket, std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_MIRROR_H_
