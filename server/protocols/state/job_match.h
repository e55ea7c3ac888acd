// JobMatch compares the job configuration of each joining worker with that of the server and of
// earlier workers.
//
//   field of JoinRequest                      compared with
//   config, except its task                   the configuration of the server
//   config.task, data_hash, model_file_hash   fields of the first worker that joined with a task
//   initial_hash                              field of the first worker that joined with a hash
//
// A field that is absent or 0 is not compared. Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_STATE_JOB_MATCH_H_
#define THINWIRE_SERVER_PROTOCOLS_STATE_JOB_MATCH_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace thinwire {

class JobMatch {
 public:
  // CONFIG is the server's job configuration. If it is nullopt, JobMatch compares only the tasks of
  // the workers.
  explicit JobMatch(std::optional<JobConfig> config);

  // Compares REQUEST. Errors: FailedPrecondition with the worker, every field that differs, and
  // both values of each field: "worker 3: task.seed differs from the job's (expected 1, got 2)".
  absl::Status Check(const JoinRequest& request) const;

  // Stores the task and the hash of the first values of REQUEST, with which later requests are
  // compared, if none is stored yet. REQUIRES: Check(request) returned OK.
  void Keep(const JoinRequest& request);

 private:
  const std::optional<JobConfig> config_;
  std::optional<JoinRequest> first_;  // only config, data_hash and model_file_hash are set
  uint64_t initial_hash_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_STATE_JOB_MATCH_H_
