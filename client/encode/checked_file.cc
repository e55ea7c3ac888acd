#include "client/encode/checked_file.h"

#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"

namespace thinwire::client {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in the machine's byte order");

void CheckedWriter::Write(std::span<const std::byte> bytes) {
  crc_ = Crc32c(bytes, crc_);
  file_.Write(bytes);
}

absl::Status CheckedWriter::Commit() {
  Put(crc_);
  return file_.Commit();
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
