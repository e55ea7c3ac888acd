// WorkerFolder: the folder with the saved states of one worker.
//
//   DIR/worker-3/residuals-40             the residuals before step 40 (residual_file.h)
//   DIR/worker-3/residuals-40.loss_scale  a file of the trainer, written before the residual file
//   DIR/worker-3/live                     the residuals of the running process (live_residuals.h)
//   DIR/worker-3-member-1/...             these files of one of a worker's members
//   DIR/worker-3/process                  the process that uses the folder: 8 bytes "TWPROC01" |
//                                         run u64 | generation u64 | incarnation u64 | CRC-32C u32
//
// A state belongs to the step before which it was saved. The newest three are kept, because servers
// that lose steps continue from one of their newest checkpoints.
//
// A process takes the folder when it has joined the servers. An earlier process that was suspended
// and goes on has then lost the folder and changes no file.
#ifndef THINWIRE_CLIENT_ENCODE_WORKER_FOLDER_H_
#define THINWIRE_CLIENT_ENCODE_WORKER_FOLDER_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace thinwire::client {

// Thread-compatible. Its functions read and change the files, and return errors of the file system
// with the path.
class WorkerFolder {
 public:
  // A process of the worker. Of two processes of a run, the one that has joined in the later
  // generation is the later one, and in the same generation the one with the later incarnation: a
  // generation may have forgotten the newest incarnations of an earlier one.
  struct Process {
    RunId run;
    Generation generation;
    Incarnation incarnation;

    auto operator<=>(const Process&) const = default;
  };

  // Creates the folder of WORKER, or of one of its members, in STATE_DIR, unless it exists.
  static absl::StatusOr<WorkerFolder> Open(const std::string& state_dir, WorkerId worker,
                                           std::optional<uint32_t> member = std::nullopt);

  // Returns the numbers of the workers that have a folder in STATE_DIR, ascending; none if there is no
  // such folder.
  static std::vector<uint32_t> NumbersIn(const std::string& state_dir);

  const std::string& path() const { return path_; }
  // Makes PROCESS the one that uses the folder. An earlier process that is writing a file cannot
  // finish it. Errors: AlreadyExists if a later process of the run uses the folder; DataLoss if the
  // file `process` is damaged.
  absl::Status Take(const Process& process);
  // Returns AlreadyExists if another process has taken the folder since. Errors: DataLoss if the
  // file `process` is damaged. REQUIRES: Take has succeeded.
  absl::Status CheckHeld() const;

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

  std::string ProcessPath() const { return path_ + "/process"; }
  // Returns the process that uses the folder; nullopt if none has taken it.
  absl::StatusOr<std::optional<Process>> ReadProcess() const;
  absl::StatusOr<std::vector<File>> Files() const;
  absl::Status RemoveIf(absl::FunctionRef<bool(const File&)> condition) const;

  std::string path_;
  Process process_;  // of the last Take
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_WORKER_FOLDER_H_
