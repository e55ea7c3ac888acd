// A file that is whole or not there: written beside its place and put there at once, with a
// CRC-32C of all its bytes as the last four.
//
//   writer    path.tmp, Write ..., Commit: checksum, flushed to the disk, renamed to path
//   reader    Open, Read ..., Finish: nothing is left over and the checksum is right
//
// A process that ends while it writes leaves what was there before. Whoever reads must distrust
// what it has read until Finish.
#ifndef THINWIRE_CLIENT_CHECKED_FILE_H_
#define THINWIRE_CLIENT_CHECKED_FILE_H_

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
  // Removes what was not committed.
  ~CheckedWriter();
  CheckedWriter(const CheckedWriter&) = delete;
  CheckedWriter& operator=(const CheckedWriter&) = delete;

  // What goes wrong is Commit's error.
  void Write(std::span<const std::byte> bytes);
  template <typename Value>
  void Put(Value value) {
    static_assert(std::is_arithmetic_v<Value>);
    Write(std::as_bytes(std::span(&value, 1)));
  }

  // Puts the file in its place; once. Errors: what the system says, with the path.
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
  // Errors: NotFound where there is no file; what the system says, with the path.
  static absl::StatusOr<CheckedReader> Open(const std::string& path);

  // Fills OUT with the next bytes. Errors: DataLoss "want 16 more bytes, got 4".
  absl::Status Read(std::span<std::byte> out);
  template <typename Value>
  absl::Status Get(Value& value) {
    static_assert(std::is_arithmetic_v<Value>);
    return Read(std::as_writable_bytes(std::span(&value, 1)));
  }

  // Errors: DataLoss for a wrong checksum, or bytes after it.
  absl::Status Finish();

 private:
  CheckedReader(std::string path, OwnedFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OwnedFile file_;
  uint32_t crc_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_CHECKED_FILE_H_
