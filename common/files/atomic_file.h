// AtomicFile: a file that is replaced as a whole. The bytes go to path.tmp; Commit flushes them to
// disk and renames the file to path. If a process ends while it writes, the old file remains.
//
// Only regular files are replaced. A device, a symbolic link or anything else at path or path.tmp
// stays as it is, and its target too: the writer may be root, and others may write to the folder.
#ifndef THINWIRE_COMMON_FILES_ATOMIC_FILE_H_
#define THINWIRE_COMMON_FILES_ATOMIC_FILE_H_

#include <sys/types.h>

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

// Returns whether PATH is a regular file or does not exist. A symbolic link is not a regular file.
bool IsRegularOrAbsent(const std::string& path);

// Returns an error, with the path, if AtomicFile could not write the file PATH: its folder does not
// exist or is not writable, or PATH is not a regular file. Changes nothing.
absl::Status CheckReplaceable(const std::string& path);

// Not thread-safe.
class AtomicFile {
 public:
  // MODE has the permissions of the new file, before the umask.
  explicit AtomicFile(std::string path, mode_t mode = 0666);
  // Removes the temporary file if Commit was not called or failed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends BYTES. Commit reports write errors.
  void Write(std::span<const std::byte> bytes);

  // Renames the finished file to its path: Flush, Rename, and a flush of the folder. Call once.
  // Errors: InvalidArgument if the path is not a regular file; errors of the file system, with the
  // path.
  absl::Status Commit();
  // The parts of Commit, for files that are renamed together. Flush writes the bytes to disk.
  absl::Status Flush();
  absl::Status Rename();

  // Returns the first error so far, such as the error of opening the temporary file.
  const absl::Status& status() const { return status_; }
  // Returns the path of the temporary file, to which a child process may write instead of Write.
  const std::string& temporary() const { return temporary_; }

 private:
  const std::string path_;
  const std::string temporary_;
  absl::Status status_;  // declared before file_, whose initialization sets it
  OwnedFile file_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FILES_ATOMIC_FILE_H_
