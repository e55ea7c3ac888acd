// Bucket is a folder of an object store. The program rclone copies files to it and from it.
//
//   s3://BUCKET/PATH   S3, with the credentials and the endpoint of the environment
//   NAME:PATH          the remote NAME of rclone's configuration
//   /PATH              a folder of this machine, such as a mounted disk
//
// Files are chosen by filter rules of rclone, of which the first that matches a file decides:
//
//   "- /server-0/LATEST"   not this file
//   "+ /server-*/**"       the files in these folders
#ifndef THINWIRE_CLI_CHECKPOINT_BUCKET_H_
#define THINWIRE_CLI_CHECKPOINT_BUCKET_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/process/process_set.h"

namespace thinwire {

// Not thread-safe. Errors of all functions begin with the URL and have rclone's message: NotFound if
// there is no such folder or S3 bucket; PermissionDenied for credentials; ResourceExhausted for a
// full local disk; FailedPrecondition without the program rclone; Cancelled after a stop signal, which
// rclone receives, too; Unavailable for all other errors. A file that a failed copy has not written
// completely does not exist.
class Bucket {
 public:
  // Errors: InvalidArgument if URL has none of the forms above. SIGNALS must outlive the bucket.
  static absl::StatusOr<Bucket> Make(const std::string& url, Signals& signals);

  const std::string& url() const { return url_; }
  // Returns the stop signal that this process received during a function or a wait, or 0.
  int signal() const { return signal_; }

  // Returns STATUS with the URL in place of the path FOLDER of a local copy.
  absl::Status Named(const absl::Status& status, const std::string& folder) const;

  // Copies files of the local FOLDER to the bucket. Skips files that are there with the same size and
  // time. Keeps the files of the bucket that FOLDER does not have.
  absl::Status Upload(const std::string& folder, const std::vector<std::string>& rules);
  // Copies files of the local FOLDER to the bucket, also those that are there with the same size and
  // time. Not all object stores have times.
  absl::Status Replace(const std::string& folder, const std::vector<std::string>& rules);
  // Copies files of the bucket to the local FOLDER.
  absl::Status Download(const std::string& folder, const std::vector<std::string>& rules);
  // Removes files of the bucket.
  absl::Status Remove(const std::vector<std::string>& rules);

  // Blocks for at most DURATION, or until a stop signal. Errors: Cancelled.
  absl::Status WaitFor(absl::Duration duration);

 private:
  Bucket(std::string url, std::string remote, Signals& signals)
      : url_(std::move(url)), remote_(std::move(remote)), signals_(&signals) {}

  // Runs rclone with WORDS for the files of RULES.
  absl::Status Run(std::vector<std::string> words, const std::vector<std::string>& rules);

  std::string url_;
  std::string remote_;  // the folder in rclone's notation
  Signals* signals_;
  int signal_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_BUCKET_H_
