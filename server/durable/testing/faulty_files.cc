#include "server/durable/testing/faulty_files.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

constexpr size_t kBlockBytes = 16;

absl::Status SystemError(int error, const std::string& path, absl::string_view problem) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", problem));
}

absl::Status CrashError(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": the file system has crashed"));
}

}  // namespace

struct FaultyFiles::Node {
  const bool is_folder;
  bool flush_failed = false;  // later flushes have no effect

  // Of a file:
  std::vector<std::byte> bytes;
  size_t durable_bytes = 0;  // as many of the first bytes are durable

  // Of a folder:
  Names names;
  Names durable_names;
  std::vector<NameChange> changes;  // from `durable_names` to `names`, in order
};

// The functions of OpenFile lock the mutex of its file system.
class FaultyFiles::OpenFile final : public WritableFile {
 public:
  OpenFile(FaultyFiles& files, std::string path, NodePointer node, uint64_t start)
      : files_(files), path_(std::move(path)), node_(std::move(node)), start_(start) {}

  absl::Status Append(const ByteChain& bytes) override {
    absl::MutexLock lock(&files_.mu_);
    RETURN_IF_ERROR(CheckOpen());
    RETURN_IF_ERROR(files_.Begin(path_));
    const std::vector<std::byte> all = bytes.ToVector();
    const size_t fitting = std::min<uint64_t>(all.size(), files_.free_bytes_);
    node_->bytes.insert(node_->bytes.end(), all.begin(),
                        all.begin() + static_cast<std::ptrdiff_t>(fitting));
    if (files_.free_bytes_ != kNever) files_.free_bytes_ -= fitting;
    if (fitting < all.size()) return SystemError(ENOSPC, path_, "cannot write");
    return files_.End(path_);
  }

  absl::Status Sync() override {
    std::function<void()> before_sync;
    {
      absl::MutexLock lock(&files_.mu_);
      before_sync = files_.before_sync_;
    }
    if (before_sync) before_sync();
    absl::MutexLock lock(&files_.mu_);
    RETURN_IF_ERROR(CheckOpen());
    RETURN_IF_ERROR(files_.Begin(path_));
    RETURN_IF_ERROR(files_.Flush(path_, *node_));
    return files_.End(path_);
  }

  void SetPath(const std::string& path) override { path_ = path; }

 private:
  absl::Status CheckOpen() const ABSL_SHARED_LOCKS_REQUIRED(files_.mu_) {
    return start_ == files_.starts_ ? absl::OkStatus() : CrashError(path_);
  }

  FaultyFiles& files_;
  std::string path_;
  const NodePointer node_;
  const uint64_t start_;
};

class FaultyFiles::HeldLock final : public FileLock {
 public:
  explicit HeldLock(std::shared_ptr<const void> token) : token_(std::move(token)) {}

 private:
  const std::shared_ptr<const void> token_;
};

FaultyFiles::NodePointer FaultyFiles::MakeFolderNode() {
  return std::make_shared<Node>(Node{.is_folder = true});
}

void FaultyFiles::CrashAt(uint64_t operation) {
  absl::MutexLock lock(&mu_);
  crash_at_ = operations_ + operation;
}

void FaultyFiles::Crash() {
  absl::MutexLock lock(&mu_);
  crashed_ = true;
}

void FaultyFiles::Restart() {
  absl::MutexLock lock(&mu_);
  Recover(*root_);
  Reopen();
}

void FaultyFiles::RestartProcess() {
  absl::MutexLock lock(&mu_);
  Reopen();
}

void FaultyFiles::Reopen() {
  ++starts_;
  crashed_ = false;
  crash_at_ = kNever;
  fail_flush_at_ = kNever;
  locks_.clear();
}

bool FaultyFiles::crashed() const {
  absl::MutexLock lock(&mu_);
  return crashed_;
}

uint64_t FaultyFiles::operations() const {
  absl::MutexLock lock(&mu_);
  return operations_;
}

void FaultyFiles::FailFlushAt(uint64_t flush) {
  absl::MutexLock lock(&mu_);
  fail_flush_at_ = flushes_ + flush;
}

uint64_t FaultyFiles::flushes() const {
  absl::MutexLock lock(&mu_);
  return flushes_;
}

void FaultyFiles::IgnoreFlushes(std::function<bool(const std::string&)> ignored) {
  const absl::MutexLock lock(&mu_);
  ignored_ = std::move(ignored);
}

void FaultyFiles::FailFileFlushAt(uint64_t flush) {
  const absl::MutexLock lock(&mu_);
  fail_file_flush_at_ = file_flushes_ + flush;
}

void FaultyFiles::SetFreeBytes(uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  free_bytes_ = bytes;
}

void FaultyFiles::BeforeSync(std::function<void()> before_sync) {
  absl::MutexLock lock(&mu_);
  before_sync_ = std::move(before_sync);
}

void FaultyFiles::SetBytes(const std::string& path, std::vector<std::byte> bytes) {
  absl::MutexLock lock(&mu_);
  Node& node = *FindExisting(path).value().node;
  node.bytes = std::move(bytes);
  node.durable_bytes = node.bytes.size();
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyFiles::Create(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(path));
  ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.node != nullptr) return SystemError(EEXIST, path, "cannot create");
  const auto node = std::make_shared<Node>(Node{.is_folder = false});
  Change(*place.folder, {{place.name, node}});
  RETURN_IF_ERROR(End(path));
  return std::make_unique<OpenFile>(*this, path, node, starts_);
}

absl::StatusOr<ByteChain> FaultyFiles::Read(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(End(path));
  ASSIGN_OR_RETURN(const Place place, FindExisting(path));
  if (place.node->is_folder) return SystemError(EISDIR, path, "cannot read");
  return ByteChain(place.node->bytes);
}

absl::StatusOr<std::vector<std::string>> FaultyFiles::List(const std::string& folder) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(End(folder));
  ASSIGN_OR_RETURN(const Place place, FindExisting(folder));
  if (!place.node->is_folder) return SystemError(ENOTDIR, folder, "cannot open the folder");
  std::vector<std::string> names;
  for (const auto& [name, node] : place.node->names) names.push_back(name);
  return names;
}

absl::Status FaultyFiles::MakeFolder(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(path));
  ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.node == nullptr) {
    Change(*place.folder, {{place.name, MakeFolderNode()}});
  } else if (!place.node->is_folder) {
    return SystemError(EEXIST, path, "cannot create the folder");
  }
  return End(path);
}

absl::Status FaultyFiles::Rename(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(from));
  ASSIGN_OR_RETURN(const Place old_place, FindExisting(from));
  ASSIGN_OR_RETURN(const Place new_place, Find(to));
  if (old_place.folder != new_place.folder) {
    return absl::UnimplementedError(absl::StrCat(from, ": rename to another folder: ", to));
  }
  if (old_place.node == new_place.node) return End(from);
  if (new_place.node != nullptr) {
    if (new_place.node->is_folder && !old_place.node->is_folder) {
      return SystemError(EISDIR, from, absl::StrCat("cannot rename to ", to));
    }
    if (!new_place.node->is_folder && old_place.node->is_folder) {
      return SystemError(ENOTDIR, from, absl::StrCat("cannot rename to ", to));
    }
    if (!new_place.node->names.empty()) {
      return SystemError(ENOTEMPTY, from, absl::StrCat("cannot rename to ", to));
    }
  }
  Change(*new_place.folder, {{old_place.name, nullptr}, {new_place.name, old_place.node}});
  return End(from);
}

absl::Status FaultyFiles::Link(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(from));
  ASSIGN_OR_RETURN(const Place old_place, FindExisting(from));
  ASSIGN_OR_RETURN(const Place new_place, Find(to));
  if (old_place.node->is_folder) return SystemError(EPERM, from, "cannot link a folder");
  if (new_place.node != nullptr)
    return SystemError(EEXIST, from, absl::StrCat("cannot link to ", to));
  Change(*new_place.folder, {{new_place.name, old_place.node}});
  return End(from);
}

absl::Status FaultyFiles::Remove(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(path));
  ASSIGN_OR_RETURN(const Place place, FindExisting(path));
  if (!place.node->names.empty()) return SystemError(ENOTEMPTY, path, "cannot remove");
  Change(*place.folder, {{place.name, nullptr}});
  return End(path);
}

absl::Status FaultyFiles::Truncate(const std::string& path, uint64_t size) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(path));
  ASSIGN_OR_RETURN(const Place place, FindExisting(path));
  Node& node = *place.node;
  if (node.is_folder) return SystemError(EISDIR, path, "cannot open");
  if (crashed_ && random_() % 2 == 0) return CrashError(path);
  node.bytes.resize(size);
  node.durable_bytes = std::min(node.durable_bytes, node.bytes.size());
  RETURN_IF_ERROR(Flush(path, node));
  return End(path);
}

absl::Status FaultyFiles::SyncFolder(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(path));
  ASSIGN_OR_RETURN(const Place place, FindExisting(path));
  if (!place.node->is_folder) return SystemError(ENOTDIR, path, "cannot open the folder");
  RETURN_IF_ERROR(Flush(path, *place.node));
  return End(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultyFiles::Lock(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin(path));
  ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.node == nullptr) {
    Change(*place.folder, {{place.name, std::make_shared<Node>(Node{.is_folder = false})}});
  }
  std::weak_ptr<const void>& holder = locks_[path];
  if (!holder.expired()) {
    return absl::UnavailableError(absl::StrCat(path, ": another process holds the lock"));
  }
  RETURN_IF_ERROR(End(path));
  const auto token = std::make_shared<const int>(0);
  holder = token;
  return std::make_unique<HeldLock>(token);
}

void FaultyFiles::Change(Node& folder, NameChange change) {
  for (const auto& [name, node] : change) {
    if (node == nullptr) {
      folder.names.erase(name);
    } else {
      folder.names[name] = node;
    }
  }
  folder.changes.push_back(std::move(change));
}

absl::StatusOr<FaultyFiles::Place> FaultyFiles::Find(const std::string& path) const {
  Place place{.node = root_};
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (place.node == nullptr) return SystemError(ENOENT, path, "cannot find the folder");
    if (!place.node->is_folder) return SystemError(ENOTDIR, path, "cannot find the folder");
    place.folder = place.node;
    place.name = name;
    const auto found = place.folder->names.find(name);
    place.node = found == place.folder->names.end() ? nullptr : found->second;
  }
  return place;
}

absl::StatusOr<FaultyFiles::Place> FaultyFiles::FindExisting(const std::string& path) const {
  ASSIGN_OR_RETURN(Place place, Find(path));
  if (place.node == nullptr) return SystemError(ENOENT, path, "cannot open");
  return place;
}

absl::Status FaultyFiles::Begin(const std::string& path) {
  if (crashed_) return CrashError(path);
  ++operations_;
  crashed_ = operations_ == crash_at_;
  return absl::OkStatus();
}

absl::Status FaultyFiles::End(const std::string& path) const {
  return crashed_ ? CrashError(path) : absl::OkStatus();
}

absl::Status FaultyFiles::Flush(const std::string& path, Node& node) {
  if (crashed_) return CrashError(path);
  ++flushes_;
  if (!node.is_folder) ++file_flushes_;
  const bool fails =
      flushes_ == fail_flush_at_ || (!node.is_folder && file_flushes_ == fail_file_flush_at_);
  if (fails) {
    node.flush_failed = true;
    return SystemError(EIO, path, "cannot flush");
  }
  if (node.flush_failed || (ignored_ != nullptr && ignored_(path))) return absl::OkStatus();
  node.durable_bytes = node.bytes.size();
  node.durable_names = node.names;
  node.changes.clear();
  return absl::OkStatus();
}

void FaultyFiles::Recover(Node& node) {
  node.flush_failed = false;
  if (!node.is_folder) {
    const size_t unflushed = node.bytes.size() - node.durable_bytes;
    const uint64_t choice = random_() % 3;
    if (choice == 0) {
      node.bytes.resize(node.durable_bytes);
    } else if (choice == 1) {
      node.bytes.resize(node.durable_bytes + random_() % (unflushed + 1));
      for (size_t begin = node.durable_bytes; begin < node.bytes.size(); begin += kBlockBytes) {
        if (random_() % 4 != 0) continue;
        const size_t end = std::min(begin + kBlockBytes, node.bytes.size());
        std::fill(node.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                  node.bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
      }
    }
    node.durable_bytes = node.bytes.size();
    return;
  }
  // A lost change also loses all later changes of its names, because they depend on it.
  std::set<std::string> lost;
  node.names = node.durable_names;
  for (NameChange& change : std::exchange(node.changes, {})) {
    const bool depends = std::ranges::any_of(
        change, [&](const auto& name_and_node) { return lost.contains(name_and_node.first); });
    if (depends || random_() % 2 == 0) {
      for (const auto& [name, renamed] : change) lost.insert(name);
    } else {
      Change(node, std::move(change));
    }
  }
  node.durable_names = node.names;
  node.changes.clear();
  for (const auto& [name, child] : node.names) Recover(*child);
}

}  // namespace thinwire
