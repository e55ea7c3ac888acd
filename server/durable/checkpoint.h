// A checkpoint is the whole state of a server at one time, in files that other programs can read
// (docs/checkpoint.md). Each shard is stored with the log sequence of the last event that its state
// contains, so the shards need not be saved at the same time.
//
//   checkpoint-00000000000000004711/   named after the first log record that a recovery still needs
//     manifest.json                    the server's state and the list of files with their CRC-32C
//     shard-00012-v00000345.safetensors
//   LATEST                             the name of the newest complete checkpoint
#ifndef THINWIRE_SERVER_DURABLE_CHECKPOINT_H_
#define THINWIRE_SERVER_DURABLE_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "server/core/shard_state.h"
#include "server/durable/event_log.h"
#include "server/durable/files.h"
#include "server/durable/log_record.h"

namespace thinwire {

struct SavedShard {
  ShardId shard;
  LogSequence applied = 0;  // the last record that STATE contains
  ShardState state;
};

struct Checkpoint {
  ServerId server;
  RunRecord run;
  std::vector<MemberRecord> members;  // ascending by worker; numbers without a process are absent
  std::vector<SavedShard> shards;     // ascending by shard
  LogSequence next = 1;               // the first record that a recovery must replay
};

// Writes CHECKPOINT to FOLDER, atomically and durably, then removes old checkpoints. The newest
// checkpoint whose masters are all finite is never removed. A shard whose version is that of the
// newest checkpoint is not written again. Errors: those of the file system; the older checkpoints
// then remain.
absl::Status WriteCheckpoint(Files& files, const std::string& folder, const Checkpoint& checkpoint);

// Returns the newest complete checkpoint of FOLDER. Errors: NotFound if there is none; DataLoss with
// the file and the cause if it is damaged.
absl::StatusOr<Checkpoint> ReadCheckpoint(Files& files, const std::string& folder);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_CHECKPOINT_H_
