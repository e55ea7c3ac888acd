// Replaces the state of all servers of a saved job (saved_job.h) as a whole: after a crash, the
// state directory DIR has either the old folders or the new ones.
//
//   DIR/server-0.new        a replacement that is being written
//   DIR/replacement         exists while replacements take the places of the old folders
//   DIR/server-0.before-1   the folder that replacement number 1 has moved aside
#ifndef THINWIRE_SERVER_DURABLE_JOB_REPLACEMENT_H_
#define THINWIRE_SERVER_DURABLE_JOB_REPLACEMENT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/durable/checkpoint_format.h"
#include "server/durable/files.h"

namespace thinwire {

// The result of ReplaceSavedJob.
struct Replacement {
  uint64_t number = 0;  // the old folders are called server-N.before-NUMBER
  bool moved = false;   // whether there were old folders
};

enum class Shards : uint8_t {
  kOther,  // the job is divided into other shards than before
  kSame,
};

// Replaces the state of all servers in DIR by SERVERS. The old folders are moved aside when the new
// ones are durable, with other shards also the workers' folders DIR/worker-N, whose residuals
// belong to the old shards. After a crash, DIR has either the old folders, and FinishReplacement
// does nothing, or FinishReplacement makes the new ones take their places. Errors: those of the
// file system. REQUIRES: DIR exists, and this process holds the locks of the servers' folders.
absl::StatusOr<Replacement> ReplaceSavedJob(Files& files, const std::string& dir,
                                            std::span<const Checkpoint> servers,
                                            Shards shards = Shards::kOther);

// Completes a replacement that a crash interrupted. Errors: those of the file system. REQUIRES: no
// process uses a server's folder in DIR.
absl::Status FinishReplacement(Files& files, const std::string& dir);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_JOB_REPLACEMENT_H_
