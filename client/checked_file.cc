#include "client/checked_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/crc32c.h"

namespace thinwire::client {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Without this the file's new name might not outlive a loss of power, though its bytes would.
absl::Status FlushFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool flushed = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (flushed) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat(folder, ": cannot be flushed"));
}

}  // namespace

CheckedWriter::CheckedWriter(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      file_(std::fopen(temporary_.c_str(), "wbe")) {
  if (file_ == nullptr) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot be written"));
  }
}

CheckedWriter::~CheckedWriter() {
  if (file_ != nullptr) std::remove(temporary_.c_str());
}

void CheckedWriter::Write(std::span<const std::byte> bytes) {
  if (!status_.ok()) return;
  crc_ = Crc32c(bytes, crc_);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) < bytes.size()) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot be written"));
  }
}

absl::Status CheckedWriter::Flush() {
  if (std::fflush(file_.get()) == 0 && fsync(fileno(file_.get())) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(temporary_, ": cannot be written"));
}

absl::Status CheckedWriter::Commit() {
  Put(crc_);
  if (status_.ok()) status_ = Flush();
  if (!status_.ok()) return status_;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot be put in its place"));
  }
  file_.reset();
  return FlushFolder(FolderOf(path_));
}

absl::StatusOr<CheckedReader> CheckedReader::Open(const std::string& path) {
  OwnedFile file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  return CheckedReader(path, std::move(file));
}

absl::Status CheckedReader::Read(std::span<std::byte> out) {
  const size_t got = std::fread(out.data(), 1, out.size(), file_.get());
  if (got < out.size()) {
    return absl::DataLossError(
        absl::StrCat(path_, ": want ", out.size(), " more bytes, got ", got));
  }
  crc_ = Crc32c(out, crc_);
  return absl::OkStatus();
}

absl::Status CheckedReader::Finish() {
  const uint32_t want = crc_;
  uint32_t got = 0;
  if (absl::Status status = Get(got); !status.ok()) return status;
  if (got != want) {
    return absl::DataLossError(absl::StrCat(path_, ": damaged: want checksum ", absl::Hex(want),
                                            ", got ", absl::Hex(got)));
  }
  if (std::fgetc(file_.get()) != EOF) {
    return absl::DataLossError(absl::StrCat(path_, ": want its end, got more bytes"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire::client
