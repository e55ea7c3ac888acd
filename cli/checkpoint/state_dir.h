// The state directory of a job: the job file and one folder per server
// (server/durable/saved_job.h).
//
//   DIR/job.textproto   the job; its presence marks DIR as the folder of a run
//   DIR/server-0        ...
#ifndef THINWIRE_CLI_CHECKPOINT_STATE_DIR_H_
#define THINWIRE_CLI_CHECKPOINT_STATE_DIR_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/job.pb.h"
#include "server/durable/files.h"

namespace thinwire {

// The name of the job file.
inline constexpr char kJobFile[] = "job.textproto";

// Returns the servers with a folder in DIR, in ascending order. Errors: NotFound if there is none.
absl::StatusOr<std::vector<ServerId>> ServersIn(Files& files, const std::string& dir);

// Returns a number of servers: "2 servers".
std::string ServersText(size_t count);

// Returns whether the servers of CONFIG keep their state on disk.
bool KeepsState(const JobConfig& config);

// Prepares the folder DIR for the servers' state. A new run needs an empty folder, or a path at
// which it can create one, and writes its job file there. RESUME requires the job file of a job
// with the same name. Does nothing if DIR is empty. Errors: InvalidArgument or FailedPrecondition,
// with the flag; errors of the file system.
absl::Status PrepareStateDir(const std::string& dir, bool resume, const JobConfig& config);

// Converts the state in DIR, the folder of an earlier run, if the run had another number of servers
// or another shard size than CONFIG. If the run had not saved anything yet, only its job file
// changes. Returns one line about the conversion, or "" if there was none. Errors: those of
// ReadSavedJob and ReplaceSavedJob; FailedPrecondition if other settings differ.
absl::StatusOr<std::string> FitState(Files& files, const std::string& dir, const JobConfig& config);

// Makes DIR, which must be empty or absent, the state directory of CONFIG's job, with the state or
// the model in SOURCE: a state directory, or a safetensors file of `--output` or `checkpoint
// export`. Returns one line about the result. Errors: those of FitState; InvalidArgument if SOURCE
// is a file without a model.
absl::StatusOr<std::string> ImportState(Files& files, const std::string& source,
                                        const std::string& dir, const JobConfig& config);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_STATE_DIR_H_
