#include "server/durable/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

absl::Status ErrorOf(const std::string& path, absl::string_view problem) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", problem));
}

// Repeats a system call that a signal has interrupted.
template <typename Call>
auto Retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// An open file, which the destructor closes.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, 0600); })) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

// The pieces of a chain that are not written yet.
class Unwritten {
 public:
  explicit Unwritten(const ByteChain& bytes) : pieces_(bytes.pieces()) {}

  bool empty() const { return pieces_.empty(); }

  // Returns the first of these pieces, as many as one call of writev accepts.
  std::span<const iovec> Next() {
    const size_t count = std::min(pieces_.size(), vectors_.size());
    for (size_t i = 0; i < count; ++i) {
      const auto bytes = pieces_[i].bytes.subspan(i == 0 ? first_offset_ : 0);
      vectors_[i] = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    }
    return std::span(vectors_).first(count);
  }

  // Removes the first BYTE_COUNT bytes.
  void Skip(size_t byte_count) {
    first_offset_ += byte_count;
    while (!pieces_.empty() && first_offset_ >= pieces_[0].bytes.size()) {
      first_offset_ -= pieces_[0].bytes.size();
      pieces_ = pieces_.subspan(1);
    }
  }

 private:
  std::span<const ByteChain::Piece> pieces_;
  size_t first_offset_ = 0;  // the number of written bytes of the first piece
  std::array<iovec, IOV_MAX> vectors_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(const ByteChain& bytes) override {
    Unwritten unwritten(bytes);
    while (!unwritten.empty()) {
      const std::span<const iovec> next = unwritten.Next();
      const ssize_t written =
          Retry([&] { return writev(file_.get(), next.data(), static_cast<int>(next.size())); });
      if (written < 0) return ErrorOf(path_, "cannot write");
      unwritten.Skip(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (Retry([&] { return fdatasync(file_.get()); }) == 0) return absl::OkStatus();
    return ErrorOf(path_, "cannot flush");
  }

  void SetPath(const std::string& path) override { path_ = path; }

 private:
  std::string path_;
  const Descriptor file_;
};

// The kernel releases the lock when the descriptor is closed.
class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(Descriptor file) : file_(std::move(file)) {}

 private:
  const Descriptor file_;
};

struct FolderCloser {
  void operator()(DIR* folder) const { closedir(folder); }
};

std::string TemporaryOf(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name, ".tmp");
}

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFiles::Create(const std::string& path) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return ErrorOf(path, "cannot create");
  return std::make_unique<PosixWritableFile>(path, std::move(file));
}

absl::StatusOr<ByteChain> PosixFiles::Read(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) return ErrorOf(path, "cannot open");
  struct stat status;
  if (fstat(file.get(), &status) != 0) return ErrorOf(path, "cannot read the size");
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got =
        Retry([&] { return read(file.get(), bytes.data() + size, bytes.size() - size); });
    if (got < 0) return ErrorOf(path, "cannot read");
    if (got == 0) break;  // another process has cut the file
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return ByteChain(std::move(bytes));
}

absl::StatusOr<std::vector<std::string>> PosixFiles::List(const std::string& folder) {
  const std::unique_ptr<DIR, FolderCloser> stream(opendir(folder.c_str()));
  if (stream == nullptr) return ErrorOf(folder, "cannot open the folder");
  std::vector<std::string> names;
  while (true) {
    errno = 0;  // distinguishes an error of readdir from the end of the folder
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) return ErrorOf(folder, "cannot read the folder");
  std::erase(names, ".");
  std::erase(names, "..");
  std::ranges::sort(names);
  return names;
}

absl::Status PosixFiles::MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  struct stat status;
  if (errno == EEXIST && stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return absl::OkStatus();
    errno = EEXIST;
  }
  return ErrorOf(path, "cannot create the folder");
}

absl::Status PosixFiles::Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrorOf(from, absl::StrCat("cannot rename to ", to));
}

absl::Status PosixFiles::Link(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrorOf(from, absl::StrCat("cannot link to ", to));
}

absl::Status PosixFiles::Remove(const std::string& path) {
  if (remove(path.c_str()) == 0) return absl::OkStatus();
  return ErrorOf(path, "cannot remove");
}

absl::Status PosixFiles::Truncate(const std::string& path, uint64_t size) {
  const Descriptor file(path, O_WRONLY);
  if (!file.ok()) return ErrorOf(path, "cannot open");
  if (Retry([&] { return ftruncate(file.get(), static_cast<off_t>(size)); }) != 0) {
    return ErrorOf(path, absl::StrCat("cannot cut to ", size, " bytes"));
  }
  if (Retry([&] { return fsync(file.get()); }) != 0) return ErrorOf(path, "cannot flush");
  return absl::OkStatus();
}

absl::Status PosixFiles::SyncFolder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return ErrorOf(path, "cannot open the folder");
  if (Retry([&] { return fsync(folder.get()); }) != 0) {
    return ErrorOf(path, "cannot flush the folder");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixFiles::Lock(const std::string& path) {
  Descriptor file(path, O_RDWR | O_CREAT);
  if (!file.ok()) return ErrorOf(path, "cannot open");
  if (Retry([&] { return flock(file.get(), LOCK_EX | LOCK_NB); }) == 0) {
    return std::make_unique<PosixFileLock>(std::move(file));
  }
  if (errno == EWOULDBLOCK) {
    return absl::UnavailableError(absl::StrCat(path, ": another process holds the lock"));
  }
  return ErrorOf(path, "cannot lock");
}

absl::Status ReplaceFile(Files& files, const std::string& folder, const std::string& name,
                         const ByteChain& bytes) {
  RETURN_IF_ERROR(PrepareFile(files, folder, name, bytes));
  return PutPreparedFile(files, folder, name);
}

absl::Status PrepareFile(Files& files, const std::string& folder, const std::string& name,
                         const ByteChain& bytes) {
  const std::string temporary = TemporaryOf(folder, name);
  // An interrupted call may have left it.
  if (const absl::Status removed = files.Remove(temporary); !absl::IsNotFound(removed)) {
    RETURN_IF_ERROR(removed);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(temporary));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Sync();
}

absl::Status PutPreparedFile(Files& files, const std::string& folder, const std::string& name) {
  RETURN_IF_ERROR(files.Rename(TemporaryOf(folder, name), absl::StrCat(folder, "/", name)));
  return files.SyncFolder(folder);
}

}  // namespace thinwire
