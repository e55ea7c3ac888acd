// Files is the interface to the file system for everything that a server keeps on disk. PosixFiles
// uses the operating system; testing/faulty_files.h simulates crashes, full disks and failed
// flushes.
//
// A write is durable after Sync() of the file, a new, renamed or removed name after SyncFolder() of
// its folder. A crash may lose or tear everything that is not durable.
#ifndef THINWIRE_SERVER_DURABLE_FILES_H_
#define THINWIRE_SERVER_DURABLE_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// A file that is written from its beginning to its end. Not thread-safe.
class WritableFile {
 public:
  // Closes the file without flushing it.
  virtual ~WritableFile() = default;
  // Appends BYTES. Errors: those of the file system, with the path.
  virtual absl::Status Append(const ByteChain& bytes) = 0;
  // Flushes all appended bytes to disk. After an error the file must not be used any more: the
  // system may have dropped the bytes, and a second Sync would report success.
  virtual absl::Status Sync() = 0;
  // The file was renamed to PATH, which later errors state.
  virtual void SetPath(const std::string& path) = 0;
};

// A lock on a file, held as long as this object exists or the process lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Thread-safe. All errors are those of the file system and name the path. NotFound: the path does
// not exist.
class Files {
 public:
  virtual ~Files() = default;

  // Creates a file. Errors: AlreadyExists.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Reads a whole file, as one piece of memory.
  virtual absl::StatusOr<ByteChain> Read(const std::string& path) = 0;
  // Returns the names in a folder, without "." and "..", in ascending order.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Creates a folder; its parent must exist. OK if the folder exists.
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  // Gives a file or folder another name, replacing a file or an empty folder of that name.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Gives the file FROM a second name.
  virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  // Removes a file or an empty folder.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Cuts a file to its first SIZE bytes and flushes it.
  virtual absl::Status Truncate(const std::string& path, uint64_t size) = 0;
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // Creates the file PATH if it does not exist, and locks it. Errors: Unavailable if another
  // process holds the lock.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// Replaces the file NAME in FOLDER with BYTES, atomically and durably, or creates it. Uses the file
// NAME.tmp. Errors: those of the file system, with the path.
absl::Status ReplaceFile(Files& files, const std::string& folder, const std::string& name,
                         const ByteChain& bytes);
// The two halves of ReplaceFile: the first one writes NAME.tmp to disk, so that the second one, which
// renames it, needs no room.
absl::Status PrepareFile(Files& files, const std::string& folder, const std::string& name,
                         const ByteChain& bytes);
absl::Status PutPreparedFile(Files& files, const std::string& folder, const std::string& name);

// The files of the operating system. Only the user of the process can read what it creates, because
// the state of a job contains secrets.
class PosixFiles final : public Files {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<ByteChain> Read(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status MakeFolder(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Truncate(const std::string& path, uint64_t size) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_FILES_H_
