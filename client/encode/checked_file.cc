#include "client/encode/checked_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/crc32c.h"
#include "common/status_macros.h"

namespace thinwire::client {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in the machine's byte order");

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

CheckedWriter::CheckedWriter(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      file_(std::fopen(temporary_.c_str(), "wbe")) {
  if (file_ == nullptr) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
}

CheckedWriter::~CheckedWriter() {
  if (file_ != nullptr) std::remove(temporary_.c_str());
}

void CheckedWriter::Write(std::span<const std::byte> bytes) {
  if (!status_.ok()) return;
  crc_ = Crc32c(bytes, crc_);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) < bytes.size()) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
  }
}

absl::Status CheckedWriter::Flush() {
  if (std::fflush(file_.get()) == 0 && fsync(fileno(file_.get())) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot write"));
}

absl::Status CheckedWriter::Commit() {
  Put(crc_);
  if (status_.ok()) status_ = Flush();
  if (!status_.ok()) return status_;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path_, ": cannot rename the temporary file to this path"));
  }
  file_.reset();
  return FlushFolder(FolderOf(path_));
}

absl::StatusOr<CheckedReader> CheckedReader::Open(const std::string& path) {
  OwnedFile file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot read"));
  return CheckedReader(path, std::move(file));
}

absl::Status CheckedReader::Read(std::span<std::byte> out) {
  const size_t got = std::fread(out.data(), 1, out.size(), file_.get());
  if (got < out.size()) {
    return absl::DataLossError(
        absl::StrCat(path_, ": truncated (expected ", out.size(), " more bytes, got ", got, ")"));
  }
  crc_ = Crc32c(out, crc_);
  return absl::OkStatus();
}

absl::Status CheckedReader::Finish() {
  const uint32_t want = crc_;
  uint32_t got = 0;
  RETURN_IF_ERROR(Get(got));
  if (got != want) {
    return absl::DataLossError(absl::StrCat(path_, ": damaged (expected checksum ", absl::Hex(want),
                                            ", got ", absl::Hex(got), ")"));
  }
  if (std::fgetc(file_.get()) != EOF) {
    return absl::DataLossError(
        absl::StrCat(path_, ": damaged (expected end of file, got more bytes)"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire::client
