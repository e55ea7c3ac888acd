// AtomicFile: a file that is replaced as a whole. The bytes go to path.tmp; Commit flushes them to
// disk and renames the file to path. If a process ends while it writes, the old file remains.
#ifndef THINWIRE_COMMON_FILES_ATOMIC_FILE_H_
#define THINWIRE_COMMON_FILES_ATOMIC_FILE_H_

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace thinwire {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OwnedFile = std::unique_ptr<std::FILE, FileCloser>;

// Returns an error, with the path, if AtomicFile could not write the file PATH: its folder does not
// exist or is not writable, or PATH is a folder. Changes nothing.
absl::Status CheckReplaceable(const std::string& path);

// Not thread-safe.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  // Removes the temporary file if Commit was not called or failed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends BYTES. Commit reports write errors.
  void Write(std::span<const std::byte> bytes);

  // Renames the finished file to its path. Call once. Errors: errors of the file system, with the
  // path.
  absl::Status Commit();

  // Returns the first error so far, such as the error of opening the temporary file.
  const absl::Status& status() const { return status_; }

 private:
  const std::string path_;
  const std::string temporary_;
  OwnedFile file_;
  absl::Status status_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FILES_ATOMIC_FILE_H_
