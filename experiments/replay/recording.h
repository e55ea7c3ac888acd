// Recording is a run of real processes as its servers have logged it: the events of every shard in
// the order in which the shard has applied them, with the payloads of the pushes
// (docs/experiments.md). A run is recorded with
//
//   recovery { durability: log keep_log: true }
//
// The events of a shard and their order determine its state (server/core/event.h), so a recording
// holds the run bit for bit. It holds no times.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_RECORDING_H_
#define THINWIRE_EXPERIMENTS_REPLAY_RECORDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "proto/job.pb.h"
#include "server/core/event.h"
#include "server/durable/files.h"

namespace thinwire::lab {

struct Recording {
  JobConfig config;  // of the workers
  JobSpec job;       // the same, checked
  Partition partition;
  Generation generation;
  uint64_t planned_examples = 0;
  std::vector<std::vector<Event>> events;  // by shard
};

// Reads the recording of the job in STATE_DIR, which takes as much memory as the logs. Errors:
// NotFound if STATE_DIR has no server's folder; Unavailable if a server still runs; DataLoss if a
// log is damaged or does not begin with the run; FailedPrecondition if the job has no event log or
// no recorded configuration.
absl::StatusOr<Recording> ReadRecording(Files& files, const std::string& state_dir);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_RECORDING_H_
