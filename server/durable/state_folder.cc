#include "server/durable/state_folder.h"

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace thinwire {

std::string ParentFolder(const std::string& path) {
  std::filesystem::path folder(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // removes a slash at the end
  const std::string parent = folder.parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string StateFolderPath(const std::string& root, ServerId server) {
  return absl::StrCat(root, "/server-", server.value);
}

absl::StatusOr<StateFolder> OpenStateFolder(Files& files, const std::string& root,
                                            ServerId server) {
  const std::string path = StateFolderPath(root, server);
  RETURN_IF_ERROR(files.MakeFolder(root));
  RETURN_IF_ERROR(files.SyncFolder(ParentFolder(root)));
  RETURN_IF_ERROR(files.MakeFolder(path));
  RETURN_IF_ERROR(files.SyncFolder(root));
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(path + "/LOCK");
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(
        absl::StrCat("state_dir: another process of server ", server.value, " uses ", path));
  }
  RETURN_IF_ERROR(lock.status());
  return StateFolder{.path = path, .lock = *std::move(lock)};
}

}  // namespace thinwire
