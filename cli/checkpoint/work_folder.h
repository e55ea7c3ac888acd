// WorkFolder is the folder DIR/mirror.tmp for the files of one mirror or fetch of the state directory
// DIR. It is in DIR because links and renames need the same file system.
#ifndef THINWIRE_CLI_CHECKPOINT_WORK_FOLDER_H_
#define THINWIRE_CLI_CHECKPOINT_WORK_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/durable/files.h"

namespace thinwire {

// Removes the file or folder PATH with everything in it. PATH need not exist.
absl::Status RemoveAll(const std::string& path);

// Only one process uses the folder at a time. Making it removes everything that a killed process
// left; the destructor removes the folder.
class WorkFolder {
 public:
  // Errors: Unavailable if another process uses the folder; errors of the file system.
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Make(Files& files, const std::string& dir);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  // Empty folders at first.
  std::string own() const { return Path(kOwn); }  // for the servers of the state directory
  std::string all() const { return Path(kAll); }  // for the servers of the bucket

 private:
  static constexpr char kOwn[] = "own";
  static constexpr char kAll[] = "all";

  WorkFolder(std::string path, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string Path(const std::string& name) const { return absl::StrCat(path_, "/", name); }

  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_WORK_FOLDER_H_
