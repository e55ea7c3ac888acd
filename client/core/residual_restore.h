// ResidualRestore: restores what an earlier process of a worker, or this process before a rollback,
// has saved or left in the worker's state folder.
#ifndef THINWIRE_CLIENT_CORE_RESIDUAL_RESTORE_H_
#define THINWIRE_CLIENT_CORE_RESIDUAL_RESTORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/encode/live_residuals.h"
#include "client/encode/push_encoder.h"
#include "client/encode/residual_file.h"
#include "client/encode/worker_folder.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Returns the owner of the residuals of the worker that OPTIONS describe.
ResidualOwner OwnerOf(const ClientOptions& options);

// Not thread-safe. Reads files, which may take as long as the disk needs.
class ResidualRestore {
 public:
  // OPTIONS and PARTITION must outlive this object.
  ResidualRestore(const ClientOptions& options, const Partition& partition)
      : options_(options), partition_(partition) {}

  // Makes the file of the running process's residuals and returns their memory, which lives as long
  // as this object. Returns null, and logs the cause, if the residuals will end with the process.
  LiveResiduals* MakeLive();
  // Opens the state folder and reads the heads of its files. Does nothing if OPTIONS name no
  // folder. Call before each Join, so that an unusable folder ends it before any server knows of
  // it. Errors: errors of the file system and of ReadResidualPoint.
  absl::Status Open();
  // Takes the state folder, restores the residuals that belong to the state of the servers into
  // ENCODER, drops all others, and removes the saved states of later steps. FIRST: the worker's
  // first step. Errors: those of WorkerFolder::Take, of ReadResiduals and of the encoder; errors of
  // the file system. REQUIRES: Open has succeeded.
  absl::Status Restore(std::span<const JoinReply> replies, Step first, bool after_rollback,
                       PushEncoder& encoder);

  // Returns the state folder; null before Open and without a folder.
  const WorkerFolder* folder() const { return folder_.get(); }
  // Returns a text that says whether the last Restore has restored residuals, and why. Empty if the
  // worker has no state folder and no residuals are lost.
  const std::string& text() const { return text_; }
  // Returns whether all residuals after the last Restore are those in the file of the first step.
  bool is_saved() const { return is_saved_; }
  // Returns the number of shards whose residuals the last Restore has dropped.
  uint64_t dropped_count() const { return dropped_count_; }

 private:
  // Returns what a killed process has left; no shards if it left nothing of RUN. If there is a file
  // that cannot be used, sets TEXT to the cause.
  LeftResiduals ReadLeft(RunId run, std::string& text) const;
  // Replaces the file that a killed process has left by that of this process, or removes it.
  void PublishResiduals();

  const ClientOptions& options_;
  const Partition& partition_;
  std::unique_ptr<LiveResiduals> live_;  // null: the residuals end with the process
  std::unique_ptr<WorkerFolder> folder_;
  std::vector<SavedPoint> files_;  // ascending
  std::string text_;
  bool is_saved_ = false;
  uint64_t dropped_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_CORE_RESIDUAL_RESTORE_H_
