// CheckedWriter and CheckedReader: files that are replaced atomically and end with a CRC-32C of all
// bytes before it.
//
//   writer   writes to path.tmp; Commit adds the checksum, flushes to disk and renames to path
//   reader   call Open, then Read, then Finish, which checks the file's end and its checksum
//
// If a process ends while it writes, the old file remains. Callers must not use the data before
// Finish has returned OK.
#ifndef THINWIRE_CLIENT_ENCODE_CHECKED_FILE_H_
#define THINWIRE_CLIENT_ENCODE_CHECKED_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire::client {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OwnedFile = std::unique_ptr<std::FILE, FileCloser>;

// Not thread-safe.
class CheckedWriter {
 public:
  explicit CheckedWriter(std::string path);
  // Removes the temporary file if Commit was not called or failed.
  ~CheckedWriter();
  CheckedWriter(const CheckedWriter&) = delete;
  CheckedWriter& operator=(const CheckedWriter&) = delete;

  // Appends BYTES. Write errors are reported by Commit.
  void Write(std::span<const std::byte> bytes);
  template <typename Value>
  void Put(Value value) {
    static_assert(std::is_arithmetic_v<Value>);
    Write(std::as_bytes(std::span(&value, 1)));
  }

  // Finishes the file and renames it to its path. Call once. Errors: errors of the file system,
  // with the path.
  absl::Status Commit();

 private:
  absl::Status Flush();

  const std::string path_;
  const std::string temporary_;
  OwnedFile file_;
  uint32_t crc_ = 0;
  absl::Status status_;
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
