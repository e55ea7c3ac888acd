// Chooses one checkpoint of each server of a saved job (saved_job.h), such that they belong
// together.
//
//   mode           to read the job                      to go back to a step S
//   sync, backup   the newest ones of one step and      the newest ones of step S and of one
//                  generation, or the newest ones       generation
//                  after all workers left
//   ssp, async     the newest one of each server        of each server, the newest one whose shards
//                                                       are at most at S
//
// A job in mode sync or backup with an event log goes back as in ssp and async, because each of its
// servers makes checkpoints at its own steps. A server without shards has no checkpoint.
#ifndef THINWIRE_SERVER_DURABLE_CHECKPOINT_CHOICE_H_
#define THINWIRE_SERVER_DURABLE_CHECKPOINT_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "proto/checkpoint.pb.h"
#include "proto/control.pb.h"
#include "server/durable/files.h"

namespace thinwire {

// A checkpoint of a server, by its name and its manifest.
struct SavedManifest {
  std::string name;
  CheckpointManifest manifest;
};

// The checkpoints of all servers of a job.
struct SavedManifests {
  CheckpointManifest first;  // of the newest checkpoint of server 0
  Partition partition;
  // By server number, the newest first. None if the server has no shards.
  std::vector<std::vector<SavedManifest>> servers;
};

// One checkpoint of each server; null for a server without shards.
using CheckpointChoice = std::vector<const SavedManifest*>;

// Returns whether the job of JOIN keeps an event log.
bool HasLog(const JoinRequest& join);

// Returns the manifest of the newest checkpoint of server 0, which describes the whole job. Errors:
// those of NewestCheckpoint and ReadManifest.
absl::StatusOr<CheckpointManifest> FirstManifest(Files& files, const std::string& dir);

// Returns the checkpoints of the run of FirstManifest(). Skips older checkpoints that are damaged.
// Errors: those of FirstManifest; DataLoss, with the folder, if a server with shards has no
// checkpoint of the run, or a damaged newest one.
absl::StatusOr<SavedManifests> FindManifests(Files& files, const std::string& dir);

// Returns the checkpoints to read. ONLY_NEWEST: the older checkpoints of a server lack events.
// Errors: FailedPrecondition, with the steps of each server, if the servers have no common step.
absl::StatusOr<CheckpointChoice> ChooseNewest(const std::string& dir, const SavedManifests& job,
                                              bool only_newest);

// Returns the checkpoints to go back to. Removes the checkpoints of other steps from JOB. Errors:
// FailedPrecondition, with the steps of each server, if a server has no such checkpoint.
absl::StatusOr<CheckpointChoice> ChooseStep(const std::string& dir, SavedManifests& job, Step step);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_CHECKPOINT_CHOICE_H_
