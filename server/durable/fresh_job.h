// FreshJob makes the state of a job at step 0 from the parameters of a model, with new optimizer
// slots. No worker has joined.
#ifndef THINWIRE_SERVER_DURABLE_FRESH_JOB_H_
#define THINWIRE_SERVER_DURABLE_FRESH_JOB_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/job_spec.h"
#include "proto/control.pb.h"
#include "server/durable/checkpoint_format.h"

namespace thinwire {

// Returns the checkpoints of all servers of SPEC's job in the run RUN, by server number. TENSORS
// are the fp32 values of the model, which RUN.join describes. Errors: InvalidArgument if TENSORS
// have other sizes than those of the model, or if the job cannot hold the model. REQUIRES:
// SPEC.Validate() has no problem, and RUN.join has the servers and the shard size of SPEC.
absl::StatusOr<std::vector<Checkpoint>> FreshJob(const JobSpec& spec, const BeginRecord& run,
                                                 std::span<const std::span<const float>> tensors);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_FRESH_JOB_H_
