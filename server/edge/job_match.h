// JobMatch compares the job of each joining worker with the server's.
//
//   field of JoinRequest                      compared with
//   config, except its task                   the server's own job
//   config.task, data_hash, model_file_hash   those of the first worker that joined with a task
//
// A request without config, such as that of a program built before the field existed, is not
// compared. Not thread-safe.
#ifndef THINWIRE_SERVER_EDGE_JOB_MATCH_H_
#define THINWIRE_SERVER_EDGE_JOB_MATCH_H_

#include <optional>

#include "absl/status/status.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace thinwire {

class JobMatch {
 public:
  // CONFIG is the server's job; nullopt: only tasks are compared.
  explicit JobMatch(std::optional<JobConfig> config);

  // Errors: FailedPrecondition that names the worker, every field that differs, and both values:
  // "worker 3: task.seed differs from the job's (expected 1, got 2)".
  absl::Status Check(const JoinRequest& request) const;

  // Keeps the task of REQUEST if no task is kept. REQUIRES: Check(request) returned OK.
  void Keep(const JoinRequest& request);

 private:
  const std::optional<JobConfig> config_;
  std::optional<JoinRequest> first_;  // its config, data_hash and model_file_hash
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_JOB_MATCH_H_
