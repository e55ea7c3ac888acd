// FaultyFiles is a file system in memory that simulates crashes, full disks and failed flushes.
//
// It keeps two states of each file and folder: the visible one and the durable one. After a crash,
// Restart() makes visible:
//
//   bytes that were not flushed   a random part; some blocks of 16 bytes in it are zero
//   names that were not flushed   a random part of the changes; a rename happens as a whole
//
// The seed determines all random choices. Link, Rename and Remove follow POSIX.
#ifndef THINWIRE_SERVER_DURABLE_TESTING_FAULTY_FILES_H_
#define THINWIRE_SERVER_DURABLE_TESTING_FAULTY_FILES_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/memory/byte_chain.h"
#include "server/durable/files.h"

namespace thinwire {

class FaultyFiles final : public Files {
 public:
  explicit FaultyFiles(uint64_t seed = 1) : random_(seed) {}

  // Crashes during the operation number OPERATION from now on, counted from 1. Every call of a
  // function that changes files or flushes them is an operation. The operation may or may not take
  // effect. It and all later calls return Unavailable until Restart().
  void CrashAt(uint64_t operation);
  // Crashes now.
  void Crash();
  // Starts the file system again, with its durable state, after a crash or without one. Open files
  // become invalid, and locks are released.
  void Restart();
  // Does the same as Restart, except that the file system keeps its visible state, as if only the
  // process had ended. Changes that were not flushed can still be lost in a later crash.
  void RestartProcess();
  bool crashed() const;
  // Returns the number of operations so far.
  uint64_t operations() const;

  // Makes the flush number FLUSH from now on fail, counted from 1. Later flushes of the same file
  // or folder return OK but make nothing durable. Sync, SyncFolder and Truncate are flushes.
  void FailFlushAt(uint64_t flush);
  // Does the same with the flushes of files alone: Sync and Truncate.
  void FailFileFlushAt(uint64_t flush);
  // From now on, the flushes of the paths for which IGNORED returns true return OK but make nothing
  // durable, as on a disk that does not keep what it promises.
  void IgnoreFlushes(std::function<bool(const std::string& path)> ignored);
  // Returns the number of flushes so far.
  uint64_t flushes() const;

  // Limits the bytes that can still be appended. An Append beyond the limit writes as many bytes as
  // fit and returns ResourceExhausted.
  void SetFreeBytes(uint64_t bytes);

  // Calls BEFORE_SYNC at the beginning of every WritableFile::Sync(), on the thread of the caller.
  void BeforeSync(std::function<void()> before_sync);

  // Replaces the bytes of the file PATH, which exists, and makes them durable. Not an operation.
  void SetBytes(const std::string& path, std::vector<std::byte> bytes);

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<ByteChain> Read(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status MakeFolder(const std::string& path) override;
  // Errors: also Unimplemented if FROM and TO are in different folders.
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Truncate(const std::string& path, uint64_t size) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  struct Node;
  class OpenFile;
  class HeldLock;
  using NodePointer = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePointer>;
  // The new nodes of the names that one operation changes; null: the name is removed.
  using NameChange = std::vector<std::pair<std::string, NodePointer>>;
  // A name in a folder. `node` is null if the folder has no such name.
  struct Place {
    NodePointer folder;
    std::string name;
    NodePointer node;
  };

  static void Change(Node& folder, NameChange change);
  // Returns the place of PATH. Errors: NotFound if its folder does not exist.
  absl::StatusOr<Place> Find(const std::string& path) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Returns the place of PATH. Errors: NotFound if PATH does not exist.
  absl::StatusOr<Place> FindExisting(const std::string& path) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status CheckRunning(const std::string& path) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Counts an operation. Returns an error if the file system has crashed. If the operation is the
  // one to crash at, sets the crash; the operation may still change the visible state.
  absl::Status Begin(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the result of an operation on PATH: an error if a crash happened during it.
  absl::Status End(const std::string& path) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Counts a flush of NODE. Returns the injected error, if any.
  absl::Status Flush(const std::string& path, Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Recover(Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  NodePointer root_ ABSL_GUARDED_BY(mu_) = MakeFolderNode();
  uint64_t starts_ ABSL_GUARDED_BY(mu_) = 0;  // an open file of an earlier start is invalid
  bool crashed_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t operations_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t crash_at_ ABSL_GUARDED_BY(mu_) = kNever;
  uint64_t flushes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t fail_flush_at_ ABSL_GUARDED_BY(mu_) = kNever;
  uint64_t file_flushes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t fail_file_flush_at_ ABSL_GUARDED_BY(mu_) = kNever;
  std::function<bool(const std::string&)> ignored_ ABSL_GUARDED_BY(mu_);  // null: none
  uint64_t free_bytes_ ABSL_GUARDED_BY(mu_) = kNever;
  std::function<void()> before_sync_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::weak_ptr<const void>> locks_ ABSL_GUARDED_BY(mu_);

  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  static NodePointer MakeFolderNode();
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_TESTING_FAULTY_FILES_H_
