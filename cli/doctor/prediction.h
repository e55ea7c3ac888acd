// Predicts the time of a training step from the measurements of `thinwire doctor`.
//
//   step   = compute + encode + wire + decode + log
//   encode = values * (push.encode + pull.encode / servers)
//   wire   = round trip + (longer + shorter / shards) * max(1, workers / servers)
//            longer and shorter: of push bytes / up and pull bytes / down
//   decode = values * (pull.decode + push.decode * workers / servers)
//   log    = push bytes * workers / servers / disk speed + one flush       (durability: log only)
//
// The sum assumes that these parts do not overlap and that one core does the work of each process.
// The parameters of a shard come back while later shards are pushed, so only those of one shard
// add to the time of the longer direction. Pure functions: thread-safe.
#ifndef THINWIRE_CLI_DOCTOR_PREDICTION_H_
#define THINWIRE_CLI_DOCTOR_PREDICTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "cli/doctor/candidates.h"
#include "server/durable/disk_speed.h"

namespace thinwire {

struct StepConditions {
  uint64_t value_count = 0;  // parameters of the model
  uint32_t worker_count = 1;
  uint32_t server_count = 1;
  uint32_t shard_count = 1;  // of one server
  absl::Duration compute;    // of one worker's step
  double up = 0;             // bytes per second from a worker to the servers; above 0
  double down = 0;           // bytes per second from the servers to a worker; above 0
  absl::Duration round_trip;
  std::optional<DiskSpeed> disk;  // set if the job has durability: log
};

struct StepPrediction {
  double push_bytes = 0;
  double pull_bytes = 0;
  absl::Duration encode;
  absl::Duration wire;
  absl::Duration decode;
  absl::Duration log;
  absl::Duration step;
};

StepPrediction Predict(const CodecCandidate& candidate, const StepConditions& conditions);

// Returns the index of the candidate with the smallest error among those whose step takes at most
// 5 % longer than the fastest one. Skips codecs with an error of 1 or more, which is the error of
// zeros, such as twobit with an unfit threshold. REQUIRES: PREDICTIONS[i] belongs to CANDIDATES[i];
// not empty.
size_t Recommend(std::span<const CodecCandidate> candidates,
                 std::span<const StepPrediction> predictions);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_PREDICTION_H_
