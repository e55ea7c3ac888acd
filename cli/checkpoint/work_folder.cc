#include "cli/checkpoint/work_folder.h"

#include <filesystem>
#include <system_error>

#include "common/base/status_macros.h"

namespace thinwire {

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
}

absl::StatusOr<std::unique_ptr<WorkFolder>> WorkFolder::Make(Files& files, const std::string& dir) {
  // rclone takes a relative path with a colon for a remote.
  const std::string path = std::filesystem::absolute(dir).string() + "/mirror.tmp";
  RETURN_IF_ERROR(files.MakeFolder(path));
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(path + "/LOCK");
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(
        absl::StrCat(dir, ": another process mirrors or fetches this state directory"));
  }
  RETURN_IF_ERROR(lock.status());
  std::unique_ptr<WorkFolder> folder(new WorkFolder(path, *std::move(lock)));
  for (const char* name : {kOwn, kAll}) {
    RETURN_IF_ERROR(RemoveAll(folder->Path(name)));
    RETURN_IF_ERROR(files.MakeFolder(folder->Path(name)));
  }
  return folder;
}

WorkFolder::~WorkFolder() { RemoveAll(path_).IgnoreError(); }

}  // namespace thinwire
