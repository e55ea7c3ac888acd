// A checkpoint is the whole state of a server at one time, in files that other programs can read
// (docs/checkpoint.md). Each shard is stored with the log sequence of the last event that its state
// contains, so the shards need not be saved at the same time.
//
//   checkpoint-00000000000000000007/   numbered from 1, in the order of writing
//     manifest.json                    the server's state and the list of files with their CRC-32C
//     shard-00012-v345.safetensors     the arrays of shard 12 at version 345
//   LATEST                             the name of the newest complete checkpoint
//
// A name that ends in .tmp belongs to a checkpoint that is being written or removed.
#ifndef THINWIRE_SERVER_DURABLE_CHECKPOINT_H_
#define THINWIRE_SERVER_DURABLE_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "proto/checkpoint.pb.h"
#include "server/durable/checkpoint_format.h"
#include "server/durable/files.h"

namespace thinwire {

// The checkpoints that WriteCheckpoint keeps, in addition to the newest healthy one and the one
// before the last change of the mode, from which an operator can go back if the change was wrong.
struct KeptCheckpoints {
  RetentionSpec retention;
  std::vector<Step> steps;  // the newest checkpoint of each of these steps, if there is one
};

// Returns the first of STEPS, which ascend, at or after each multiple of EVERY above 0. EVERY 0: no
// step.
std::vector<Step> FirstSteps(const std::vector<Step>& steps, uint64_t every);

// WriteCheckpoint, ContinueFrom and ContinueFromNewest REQUIRE: FOLDER exists, and no other thread
// or process writes checkpoints to it.

// Writes CHECKPOINT to FOLDER, atomically and durably, then removes old checkpoints. Keeps the
// checkpoints KEPT, always the newest healthy one, and the newest one with another mode. If the
// arrays of a shard are those of the newest checkpoint, links its file instead of writing it again.
// Errors: those of the file system; LATEST then names a complete checkpoint, the old one or the new
// one.
absl::Status WriteCheckpoint(Files& files, const std::string& folder, const Checkpoint& checkpoint,
                             const KeptCheckpoints& kept = KeptCheckpoints());

// Returns the newest complete checkpoint of FOLDER. Checks every byte of its files. Errors:
// NotFound if FOLDER has no checkpoint; DataLoss with the file and the cause if the checkpoint is
// damaged.
absl::StatusOr<Checkpoint> ReadCheckpoint(Files& files, const std::string& folder);

// A checkpoint from which all servers of a job can continue together.
struct AlignedCheckpoint {
  Step step;
  std::string name;
};

// Returns the checkpoints of FOLDER that have a step, in ascending order of their steps. A
// checkpoint of a generation that a later generation has rolled back to an earlier step is left
// out. So is a damaged manifest. Returns an empty vector if FOLDER has no checkpoint. Errors: those
// of the file system.
absl::StatusOr<std::vector<AlignedCheckpoint>> ListAlignedCheckpoints(Files& files,
                                                                      const std::string& folder);

// Makes the checkpoint of STEP the newest one of FOLDER, under GENERATION, atomically and durably:
// writes it again with links to its files, then removes the checkpoints that were written after it.
// Errors: NotFound if there is no checkpoint of STEP; those of ReadCheckpoint and WriteCheckpoint.
// A crash leaves the newest checkpoint that FOLDER had before, or the new one.
absl::Status ContinueFrom(Files& files, const std::string& folder, Step step,
                          Generation generation);
// Writes the newest checkpoint again under GENERATION, then removes old checkpoints, but not those
// of KEPT. Errors: those of ReadCheckpoint and WriteCheckpoint.
absl::Status ContinueFromNewest(Files& files, const std::string& folder, Generation generation,
                                const KeptCheckpoints& kept = KeptCheckpoints());

// The functions below are for tools that look at all checkpoints of a folder.

// Returns the names of the checkpoints in FOLDER, in the order of writing. Errors: those of the
// file system.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(Files& files, const std::string& folder);
// Returns the name of the newest complete checkpoint. Errors: those of ReadCheckpoint.
absl::StatusOr<std::string> NewestCheckpoint(Files& files, const std::string& folder);
// Returns the manifest of the checkpoint NAME without a look at its other files. Errors: DataLoss
// with the file and the cause if it is damaged.
absl::StatusOr<CheckpointManifest> ReadManifest(Files& files, const std::string& folder,
                                                const std::string& name);
// Returns the checkpoint NAME. Checks every byte of its files. Errors: those of ReadManifest, also
// for the other files.
absl::StatusOr<Checkpoint> ReadNamedCheckpoint(Files& files, const std::string& folder,
                                               const std::string& name);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_CHECKPOINT_H_
