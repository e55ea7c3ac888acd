// WorkerFolder: the folder with the saved states of one worker.
//
//   DIR/worker-3/residuals-40             the residuals before step 40 (residual_file.h)
//   DIR/worker-3/residuals-40.loss_scale  a file of the trainer, written before the residual file
//   DIR/worker-3/live                     the residuals of the running process (live_residuals.h)
//
// A state belongs to the step before which it was saved. The newest three are kept, because servers
// that lose steps continue from one of their newest checkpoints.
#ifndef THINWIRE_CLIENT_ENCODE_WORKER_FOLDER_H_
#define THINWIRE_CLIENT_ENCODE_WORKER_FOLDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace thinwire::client {

// Immutable, but its functions read and change the files. All functions return errors of the file
// system with the path.
class WorkerFolder {
 public:
  // Creates the folder of WORKER in STATE_DIR, unless it exists.
  static absl::StatusOr<WorkerFolder> Open(const std::string& state_dir, WorkerId worker);

  const std::string& path() const { return path_; }
  // Returns the path of the residual file of STEP.
  std::string PathOf(Step step) const;
  // Returns the path of the residuals of the running process.
  std::string LivePath() const { return path_ + "/live"; }
  // Returns the steps that have a residual file, ascending.
  absl::StatusOr<std::vector<Step>> Steps() const;

  // Removes the states of the steps above STEP.
  absl::Status RemoveAbove(Step step) const;
  // Removes all states except the newest three.
  absl::Status RemoveOld() const;

 private:
  struct File {
    std::string name;
    Step step;
    bool has_residuals;  // false: a file beside the residual file, or an incomplete file
  };

  explicit WorkerFolder(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<std::vector<File>> Files() const;
  absl::Status RemoveIf(absl::FunctionRef<bool(Step)> condition) const;

  std::string path_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_WORKER_FOLDER_H_
