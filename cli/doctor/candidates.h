// The pairs of push and pull codec that a job may use, with their costs on this machine.
#ifndef THINWIRE_CLI_DOCTOR_CANDIDATES_H_
#define THINWIRE_CLI_DOCTOR_CANDIDATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/encode/codec_choice.h"
#include "common/time/clock.h"
#include "config/job_text.h"

namespace thinwire {

struct CodecCandidate {
  std::string push;  // the values of the job file's fields
  std::string pull;
  client::CodecCost push_cost;
  client::CodecCost pull_cost;
  // The relative L2 error of one push of normally distributed values, without error feedback.
  double error = 0;
};

// Returns a candidate for each push codec with which JOB is valid: parameters come back in the
// codec of the gradients, or as deltas in this codec if it does not carry whole parameters, or in
// the pull codec of the job if the job refuses these deltas. Adds the job's own pair, unless it
// chooses its codec at run time or pulls exact deltas, whose size depends on the training. Measures
// shards of SHARD_VALUES values, a millisecond or two per codec. Errors: those of CheckJob.
absl::StatusOr<std::vector<CodecCandidate>> MeasureCandidates(const JobText& job,
                                                              uint64_t shard_values, Clock& clock);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_CANDIDATES_H_
