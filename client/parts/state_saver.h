// StateSaver: the part of a client that saves the worker's residuals, which outlive the process and
// rollbacks of the servers. A worker with a state folder calls Save after Join and before Leave, and
// StartSave before each step for which IsDue().
#ifndef THINWIRE_CLIENT_PARTS_STATE_SAVER_H_
#define THINWIRE_CLIENT_PARTS_STATE_SAVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/residual_file.h"
#include "client/encode/worker_folder.h"
#include "client/parts/core_thread.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"

namespace thinwire::client {

class StateSaver {
 public:
  explicit StateSaver(CoreThread& thread);
  // Finishes the write that StartSave has begun.
  ~StateSaver();

  // Writes a file of the caller's own. PATH is the path of the residual file, with which the file's
  // path begins.
  using WriteBeside = std::function<absl::Status(const std::string& path)>;
  // Saves the residuals before the next step in the state folder, for the next process with this
  // worker's number and for rollbacks. First calls BESIDE, unless it is null. Does nothing without
  // a state folder. If a server has not yet reported which pushed values gTop-k selected, first
  // calls WaitAll. REQUIRES: between BeginStep and NextStep, called only after an error. Errors:
  // errors of the file system, with the path; errors of WaitAll and BESIDE; AlreadyExists if
  // another process of the worker has taken the folder; FailedPrecondition if no server is joined,
  // or if Ready was called in an incomplete step, because the residuals may then lack values of
  // pushes that no server has received.
  absl::Status Save(const WriteBeside& beside = nullptr);
  // Copies the residuals and returns. A thread of the client then calls BESIDE and writes the
  // residuals. If writing fails, the thread logs the error, and the files of earlier steps remain.
  // REQUIRES: as Save. Errors: those of Save, except errors of writing; Unavailable if an earlier
  // state is still being written.
  absl::Status StartSave(WriteBeside beside = nullptr);
  // Blocks until the write that StartSave has begun has ended.
  void WaitForWrite();
  // Returns true if the worker has a state folder and the servers make a checkpoint of the next
  // step: the worker saves its state before BeginStep.
  bool IsDue() const;
  // Returns the state folder; null before Join and without a state folder.
  const WorkerFolder* folder() const;
  // Returns whether the last Join has restored all residuals from the file of the next step, so that
  // Save would write them again.
  bool is_saved() const;
  // Returns a text that says whether the last Join restored saved residuals, and why. The text is
  // empty if the worker has no state folder and no residuals are lost.
  const std::string& restored() const;

 private:
  // Returns the residuals before the next step. They are valid until the encoder is used again.
  absl::StatusOr<std::vector<ShardResidualsView>> CurrentResiduals();
  // Writes the state before POINT.step, as Save does.
  absl::Status Write(const ResidualPoint& point, std::span<const ShardResidualsView> residuals,
                     const WriteBeside& beside) const;

  CoreThread& thread_;
  const std::unique_ptr<Executor> writer_;        // null without a state folder
  LogLimit failure_lines_{10, absl::Minutes(1)};  // about states that were not saved
  std::atomic<bool> writing_ = false;             // true until the state of StartSave is written
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_STATE_SAVER_H_
