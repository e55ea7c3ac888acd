#include "common/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

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

// Returns the kind of the file PATH for messages; "" for a regular file and for none.
absl::string_view IrregularKind(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return "";
  if (S_ISDIR(status.st_mode)) return "a folder";
  if (S_ISLNK(status.st_mode)) return "a symbolic link";
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) return "a device";
  return "a pipe or a socket";
}

absl::Status CheckRegularOrAbsent(const std::string& path) {
  const absl::string_view kind = IrregularKind(path);
  if (kind.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": not a regular file (expected a regular file or none, got ", kind, ")"));
}

// Creates the file PATH anew. Returns null, with the error in STATUS, if it cannot.
OwnedFile CreateFile(const std::string& path, mode_t mode, absl::Status& status) {
  status = CheckRegularOrAbsent(path);
  if (!status.ok()) return nullptr;
  unlink(path.c_str());  // a process that was killed may have left it
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  OwnedFile file(fd < 0 ? nullptr : fdopen(fd, "wb"));
  if (file == nullptr) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write"));
    if (fd >= 0) close(fd);
  }
  return file;
}

}  // namespace

bool IsRegularOrAbsent(const std::string& path) { return IrregularKind(path).empty(); }

absl::Status CheckReplaceable(const std::string& path) {
  RETURN_IF_ERROR(CheckRegularOrAbsent(path));
  const std::string folder = FolderOf(path);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write to the folder ", folder));
}

AtomicFile::AtomicFile(std::string path, mode_t mode)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      file_(CreateFile(temporary_, mode, status_)) {}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::remove(temporary_.c_str());
}

void AtomicFile::Write(std::span<const std::byte> bytes) {
  if (!status_.ok() || bytes.empty()) return;  // fwrite refuses a null pointer
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) < bytes.size()) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
}

absl::Status AtomicFile::Flush() {
  if (status_.ok() && (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0)) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
  return status_;
}

absl::Status AtomicFile::Rename() {
  RETURN_IF_ERROR(CheckRegularOrAbsent(path_));
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path_, ": cannot rename the temporary file to this path"));
  }
  file_.reset();
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(Rename());
  return FlushFolder(FolderOf(path_));
}

}  // namespace thinwire
