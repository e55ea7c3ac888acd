// A saved job is the state of all servers of a job in a state directory: one folder per server.
//
//   DIR/server-0   the folder of server 0 (state_folder.h)
//
// job_replacement.h has further files in DIR, which replace the folders of all servers.
#ifndef THINWIRE_SERVER_DURABLE_SAVED_JOB_H_
#define THINWIRE_SERVER_DURABLE_SAVED_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/durable/checkpoint_format.h"
#include "server/durable/files.h"
#include "server/durable/job_replacement.h"

namespace thinwire {

struct SavedJob {
  std::vector<Checkpoint> servers;  // by server number
  // The smallest and the largest step at which a shard was saved.
  Step least_step;
  Step largest_step;
  // The locks of the servers' folders. No server can use its folder while this object exists.
  std::vector<std::unique_ptr<FileLock>> locks;
};

// Returns, by server number, the names of one checkpoint of each server of the job in DIR. In modes
// sync and backup, these are the newest ones of one step and one generation. In ssp and async, each
// is the newest of its server. A server without shards needs no checkpoint, and its name is "".
// Does not look at event logs. Errors: NotFound if server 0 has no checkpoint; FailedPrecondition,
// with the steps of each server, if the servers have no common step; DataLoss, with the file and
// the cause, if a checkpoint is missing or damaged.
absl::StatusOr<std::vector<std::string>> ChooseCheckpoints(Files& files, const std::string& dir);

// Reads the checkpoints of ChooseCheckpoints(). With an event log, each must be the newest of its
// server. Changes nothing, except that an incomplete commit at the end of an event log is cut.
// Errors: those of ChooseCheckpoints; Unavailable if a process uses a server's folder;
// FailedPrecondition if an event log has newer events.
absl::StatusOr<SavedJob> ReadSavedJob(Files& files, const std::string& dir);

// The result of RestoreSavedJob.
struct RestoredJob {
  Step least_step, largest_step;  // of the shards
  Replacement replacement;
};

// Replaces the state of the job in DIR by older checkpoints, under a new generation. All workers
// have left in the new state. The old folders are moved aside. With durability: checkpoint in modes
// sync and backup, these are the newest checkpoints of STEP of one generation. Otherwise, each
// server has checkpoints of its own steps, and each gets its newest one whose shards are at most at
// STEP. Errors: those of ReadSavedJob and ReplaceSavedJob; FailedPrecondition, with the steps of
// each server, if a server has no such checkpoint.
absl::StatusOr<RestoredJob> RestoreSavedJob(Files& files, const std::string& dir, Step step);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_SAVED_JOB_H_
