#include "common/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Flushes the directory entry of the new file to disk. Without this flush, a power failure could
// lose the entry although the file's content is on the disk.
absl::Status FlushFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool flushed = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (flushed) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat(folder, ": cannot flush the folder"));
}

}  // namespace

absl::Status CheckReplaceable(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a folder (expected a file)"));
  }
  const std::string folder = FolderOf(path);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write to the folder ", folder));
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      file_(std::fopen(temporary_.c_str(), "wbe")) {
  if (file_ == nullptr) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::remove(temporary_.c_str());
}

void AtomicFile::Write(std::span<const std::byte> bytes) {
  if (!status_.ok() || bytes.empty()) return;  // fwrite refuses a null pointer
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) < bytes.size()) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
}

absl::Status AtomicFile::Commit() {
  if (!status_.ok()) return status_;
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path_, ": cannot rename the temporary file to this path"));
  }
  file_.reset();
  return FlushFolder(FolderOf(path_));
}

}  // namespace thinwire
