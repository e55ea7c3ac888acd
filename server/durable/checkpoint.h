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

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/checkpoint.pb.h"
#include "server/durable/checkpoint_format.h"
#include "server/durable/files.h"
#include "server/durable/retention.h"

namespace thinwire {

// WriteCheckpoint, ContinueFrom and ContinueFromNewest REQUIRE: FOLDER exists, and no other thread
// or process writes checkpoints to it.

// Writes CHECKPOINT to FOLDER, atomically and durably, then removes old checkpoints that are not
// KEPT (NamesToKeep). If the arrays of a shard are those of the newest checkpoint, links its file
// instead of writing it again.
// Errors: those of the file system; LATEST then names a complete checkpoint, the old one or the new
// one.
absl::Status WriteCheckpoint(Files& files, const std::string& folder, const Checkpoint& checkpoint,
                             const KeptCheckpoints& kept = KeptCheckpoints());

// Returns the newest complete checkpoint of FOLDER. Checks every byte of its files. Errors:
// NotFound if FOLDER has no checkpoint; DataLoss with the file and the cause if the checkpoint is
// damaged.
absl::StatusOr<Checkpoint> ReadCheckpoint(Files& files, const std::string& folder);

// Returns the AlignedCheckpoints() of FOLDER. Errors: those of the file system.
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
// Returns the checkpoints in FOLDER with their manifests. Errors: those of the file system.
absl::StatusOr<std::vector<ListedCheckpoint>> ListManifests(Files& files,
                                                            const std::string& folder);
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
