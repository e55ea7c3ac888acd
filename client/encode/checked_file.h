// CheckedWriter and CheckedReader: files that are replaced atomically. The last four bytes of a
// file are the CRC-32C of all preceding bytes.
//
//   writer   an AtomicFile (common/files/atomic_file.h); Commit adds the checksum
//   reader   call Open, then Read, then Finish, which checks the file's end and its checksum
//
// Callers must not use the data before Finish has returned OK.
#ifndef THINWIRE_CLIENT_ENCODE_CHECKED_FILE_H_
#define THINWIRE_CLIENT_ENCODE_CHECKED_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/atomic_file.h"

namespace thinwire::client {

// Not thread-safe.
class CheckedWriter {
 public:
  explicit CheckedWriter(std::string path) : file_(std::move(path)) {}

  // Appends BYTES. Write errors are reported by Commit.
  void Write(std::span<const std::byte> bytes);
  template <typename Value>
  void Put(Value value) {
    static_assert(std::is_arithmetic_v<Value>);
    Write(std::as_bytes(std::span(&value, 1)));
  }

  // Adds the checksum and replaces the file. Call once. Errors: those of AtomicFile::Commit.
  absl::Status Commit();

 private:
  AtomicFile file_;
  uint32_t crc_ = 0;
};

// Not thread-safe.
class CheckedReader {
 public:
  // Opens the file at PATH. Errors: NotFound if there is no file; other errors of the file system,
  // with the path.
  static absl::StatusOr<CheckedReader> Open(const std::string& path);

  // Fills OUT with the next bytes. Errors: DataLoss if the file is too short.
  absl::Status Read(std::span<std::byte> out);
  template <typename Value>
  absl::Status Get(Value& value) {
    static_assert(std::is_arithmetic_v<Value>);
    return Read(std::as_writable_bytes(std::span(&value, 1)));
  }

  // Checks that the checksum is correct and that the file ends after the checksum. Errors: DataLoss
  // if either check fails.
  absl::Status Finish();

 private:
  CheckedReader(std::string path, OwnedFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OwnedFile file_;
  uint32_t crc_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_CHECKED_FILE_H_
