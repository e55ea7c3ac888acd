#include "cli/checkpoint/mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cli/checkpoint/state_dir.h"
#include "common/base/status_macros.h"
#include "server/durable/checkpoint.h"
#include "server/durable/checkpoint_choice.h"
#include "server/durable/files.h"
#include "server/durable/saved_job.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

constexpr char kLatest[] = "LATEST";
// Files of a server's folder that a server reads beside its newest checkpoint.
constexpr const char* kSmallFiles[] = {"lead", "precision", "epoch"};
// How often a copy of a folder is begun again because the server removed a checkpoint meanwhile.
constexpr int kSnapshotTries = 5;

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
}

// A folder in the state directory for the files of one mirror or fetch, so that they have the same
// file system. Only one process uses it at a time. Removes everything that a killed process left.
class WorkFolder {
 public:
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Make(Files& files, const std::string& dir) {
    // rclone takes a relative path with a colon for a remote.
    const std::string path = std::filesystem::absolute(dir).string() + "/mirror.tmp";
    RETURN_IF_ERROR(files.MakeFolder(path));
    absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(path + "/LOCK");
    if (absl::IsUnavailable(lock.status())) {
      return absl::UnavailableError(
          absl::StrCat(dir, ": another process mirrors or fetches this state directory"));
    }
    RETURN_IF_ERROR(lock.status());
    std::unique_ptr<WorkFolder> folder(new WorkFolder(path, *std::move(lock)));
    for (const char* name : {kOwn, kAll}) {
      RETURN_IF_ERROR(RemoveAll(folder->Path(name)));
      RETURN_IF_ERROR(files.MakeFolder(folder->Path(name)));
    }
    return folder;
  }
  ~WorkFolder() { RemoveAll(path_).IgnoreError(); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::string own() const { return Path(kOwn); }  // the servers of this state directory
  std::string all() const { return Path(kAll); }  // the servers of the bucket

 private:
  static constexpr char kOwn[] = "own";
  static constexpr char kAll[] = "all";

  WorkFolder(std::string path, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string Path(const std::string& name) const { return absl::StrCat(path_, "/", name); }

  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
};

// Links the file NAME in FROM to TO, if it exists.
absl::Status LinkIfAny(Files& files, const std::string& from, const std::string& to,
                       const std::string& name) {
  const absl::Status status =
      files.Link(absl::StrCat(from, "/", name), absl::StrCat(to, "/", name));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// Links the checkpoint NAME of the folder FROM to the folder TO. ONLY_MANIFEST: without its arrays.
absl::Status LinkCheckpoint(Files& files, const std::string& from, const std::string& to,
                            const std::string& name, bool only_manifest) {
  const std::string source = absl::StrCat(from, "/", name);
  const std::string target = absl::StrCat(to, "/", name);
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, files.List(source));
  RETURN_IF_ERROR(files.MakeFolder(target));
  for (const std::string& part : parts) {
    if (only_manifest && part != "manifest.json") continue;
    RETURN_IF_ERROR(files.Link(absl::StrCat(source, "/", part), absl::StrCat(target, "/", part)));
  }
  return absl::OkStatus();
}

// Links the complete checkpoints of the server's folder FROM to the folder TO. A server replaces
// its files and never changes them, so the links keep the files of this moment. Errors: NotFound if
// there is no checkpoint, or if the server removed one meanwhile.
absl::Status LinkCheckpoints(Files& files, const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(files.MakeFolder(to));
  RETURN_IF_ERROR(files.Link(absl::StrCat(from, "/", kLatest), absl::StrCat(to, "/", kLatest)));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, from));
  for (const std::string& name : names) {
    RETURN_IF_ERROR(LinkCheckpoint(files, from, to, name, /*only_manifest=*/false));
  }
  ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(files, to));
  for (const std::string& name : names) {
    // LATEST did not name it yet.
    if (name > newest) RETURN_IF_ERROR(RemoveAll(absl::StrCat(to, "/", name)));
  }
  for (const char* name : kSmallFiles) RETURN_IF_ERROR(LinkIfAny(files, from, to, name));
  return absl::OkStatus();
}

// Links the state of SERVERS in DIR to OWN. Returns the servers that have a checkpoint. Errors:
// NotFound if none has.
absl::StatusOr<std::vector<ServerId>> TakeSnapshot(Files& files, const std::string& dir,
                                                   const std::string& own) {
  ASSIGN_OR_RETURN(const std::vector<ServerId> servers, ServersIn(files, dir));
  std::vector<ServerId> linked;
  for (const ServerId server : servers) {
    const std::string to = StateFolderPath(own, server);
    absl::Status status;
    for (int i = 0; i < kSnapshotTries; ++i) {
      RETURN_IF_ERROR(RemoveAll(to));
      status = LinkCheckpoints(files, StateFolderPath(dir, server), to);
      if (!absl::IsNotFound(status)) break;
    }
    if (absl::IsNotFound(status)) {
      RETURN_IF_ERROR(RemoveAll(to));
      continue;
    }
    RETURN_IF_ERROR(status);
    linked.push_back(server);
  }
  if (linked.empty()) {
    return absl::NotFoundError(absl::StrCat(dir, ": no server has a checkpoint yet"));
  }
  RETURN_IF_ERROR(LinkIfAny(files, dir, own, kJobFile));
  return linked;
}

absl::StatusOr<uint64_t> RunOf(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(files, folder));
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(files, folder, newest));
  return manifest.run();
}

// Checks that the servers in ALL, the manifests of a bucket, have the run of the folder OWN.
absl::Status CheckSameRun(Files& files, const std::string& own, const std::string& all) {
  ASSIGN_OR_RETURN(const uint64_t run, RunOf(files, own));
  const absl::StatusOr<std::vector<ServerId>> servers = ServersIn(files, all);
  if (absl::IsNotFound(servers.status())) return absl::OkStatus();
  RETURN_IF_ERROR(servers.status());
  for (const ServerId server : *servers) {
    const absl::StatusOr<uint64_t> other = RunOf(files, StateFolderPath(all, server));
    // An interrupted first copy has left no checkpoint.
    if (!other.ok() || *other == run) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("server-%u: checkpoints of another run (expected run %016x or an empty "
                        "folder, got run %016x)",
                        server.value, run, *other));
  }
  return absl::OkStatus();
}

// The checkpoints from which the servers of a job can continue together.
struct Common {
  std::vector<std::string> names;  // by server number; "" for a server without shards
  std::string steps;               // "step 40", "steps 38 to 41"
};

absl::StatusOr<Common> FindCommon(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(const CheckpointManifest first, FirstManifest(files, dir));
  // Without their logs, servers go back to their own newest checkpoints.
  const auto step = HasLog(first.join()) ? std::optional(Step{std::numeric_limits<uint64_t>::max()})
                                         : std::nullopt;
  Common common;
  ASSIGN_OR_RETURN(common.names, ChooseCheckpoints(files, dir, step));
  uint64_t least = std::numeric_limits<uint64_t>::max();
  uint64_t most = 0;
  for (uint32_t s = 0; s < common.names.size(); ++s) {
    if (common.names[s].empty()) continue;
    ASSIGN_OR_RETURN(const CheckpointManifest manifest,
                     ReadManifest(files, StateFolderPath(dir, ServerId{s}), common.names[s]));
    for (const CheckpointManifest::Shard& shard : manifest.shards()) {
      least = std::min(least, shard.frontier());
      most = std::max(most, shard.frontier());
    }
  }
  common.steps =
      least >= most ? absl::StrCat("step ", most) : absl::StrCat("steps ", least, " to ", most);
  return common;
}

// Returns the rules for the checkpoints of SERVER to remove from a bucket with the manifests ALL:
// those that are not in OWN, and that are older than COMMON or newer than LATEST. The latter are
// the rest of an interrupted copy, or of steps before a restore. COMMON is empty for a server without
// shards.
absl::StatusOr<std::vector<std::string>> RulesToRemove(Files& files, ServerId server,
                                                       const std::string& own,
                                                       const std::string& all,
                                                       const std::string& common) {
  ASSIGN_OR_RETURN(const std::vector<std::string> kept,
                   ListCheckpoints(files, StateFolderPath(own, server)));
  std::set<std::string> keep(kept.begin(), kept.end());
  const std::string folder = StateFolderPath(all, server);
  ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(files, folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> mirrored, ListCheckpoints(files, folder));
  for (const std::string& name : mirrored) {
    if (!common.empty() && name >= common && name <= newest) keep.insert(name);
  }
  const std::string prefix = absl::StrCat("/server-", server.value, "/");
  std::vector<std::string> rules;
  for (const std::string& name : keep) rules.push_back(absl::StrCat("- ", prefix, name, "/**"));
  rules.push_back(absl::StrCat("+ ", prefix, "checkpoint-*/**"));
  return rules;
}

// Returns STATUS with the URL in place of the folder ALL.
absl::Status OfBucket(const absl::Status& status, const std::string& all, const Bucket& bucket) {
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{all, bucket.url()}}));
}

std::string CountText(size_t count) {
  return absl::StrCat(count, count == 1 ? " server" : " servers");
}

// Checks every byte of the checkpoints in FOLDER. Removes those that are newer than LATEST, which
// an interrupted copy has left, and older ones that are damaged.
absl::Status CheckFetched(Files& files, const std::string& folder, std::ostream& err) {
  ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(files, folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (name > newest) {
      RETURN_IF_ERROR(RemoveAll(path));
      continue;
    }
    const absl::Status status = ReadNamedCheckpoint(files, folder, name).status();
    if (status.ok()) continue;
    if (name == newest) return status;
    err << "warning: left out: " << status.message() << std::endl;
    RETURN_IF_ERROR(RemoveAll(path));
  }
  return absl::OkStatus();
}

// Checks that the servers in ALL can continue together. Returns a text about their steps.
absl::StatusOr<std::string> FitTogether(Files& files, const std::string& all) {
  ASSIGN_OR_RETURN(const CheckpointManifest first, FirstManifest(files, all));
  const uint32_t count = first.join().servers();
  ASSIGN_OR_RETURN(const std::vector<ServerId> servers, ServersIn(files, all));
  for (const ServerId server : servers) {
    // The job had more servers once.
    if (server.value >= count) RETURN_IF_ERROR(RemoveAll(StateFolderPath(all, server)));
  }
  ASSIGN_OR_RETURN(const Common common, FindCommon(files, all));
  for (uint32_t s = 0; s < count; ++s) {
    // A server without shards may have no checkpoint.
    RETURN_IF_ERROR(files.MakeFolder(StateFolderPath(all, ServerId{s})));
  }
  const std::string text = absl::StrCat(CountText(count), " at ", common.steps);
  if (!HasLog(first.join())) return text;
  ASSIGN_OR_RETURN(const RestoredJob restored,
                   RestoreSavedJob(files, all, Step{std::numeric_limits<uint64_t>::max()}));
  for (uint32_t s = 0; s < count; ++s) {
    RETURN_IF_ERROR(RemoveAll(
        absl::StrCat(StateFolderPath(all, ServerId{s}), ".before-", restored.replacement.number)));
  }
  return absl::StrCat(text, ", without the event log");
}

// Checks the folder of the only fetched SERVER in ALL. Returns a text about it.
absl::StatusOr<std::string> CheckAlone(Files& files, const std::string& all, ServerId server) {
  const std::string folder = StateFolderPath(all, server);
  ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(files, folder));
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(files, folder, newest));
  if (HasLog(manifest.join())) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder,
                     ": durability: log: a server alone cannot be fetched (expected a fetch of all "
                     "servers into one folder, got --server ",
                     server.value, ")"));
  }
  return absl::StrCat("server ", server.value, ", newest ", newest);
}

// Makes everything in the file system of PATH durable.
absl::Status SyncAll(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int result = fd < 0 ? -1 : syncfs(fd);
  const int error = errno;
  if (fd >= 0) close(fd);
  return result == 0 ? absl::OkStatus() : absl::ErrnoToStatus(error, path);
}

// Checks that the state directory DIR has nothing that a fetch of SERVER would replace.
absl::Status CheckVacant(Files& files, const std::string& dir, std::optional<ServerId> server) {
  std::vector<std::string> taken;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(dir));
  for (const std::string& name : names) {
    const bool is_state = server.has_value() ? name == absl::StrCat("server-", server->value)
                                             : name.starts_with("server-") || name == kJobFile;
    if (!is_state) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(dir, ": has state already (expected a folder without ", name, ")"));
  }
  return absl::OkStatus();
}

// Gives the fetched folders in ALL their places in DIR, the job file last: `thinwire train --resume`
// takes no folder without it.
absl::Status Install(Files& files, const std::string& all, const std::string& dir) {
  RETURN_IF_ERROR(SyncAll(all));
  ASSIGN_OR_RETURN(const std::vector<ServerId> servers, ServersIn(files, all));
  for (const ServerId server : servers) {
    RETURN_IF_ERROR(files.Rename(StateFolderPath(all, server), StateFolderPath(dir, server)));
  }
  const absl::Status status =
      files.Rename(absl::StrCat(all, "/", kJobFile), absl::StrCat(dir, "/", kJobFile));
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  return files.SyncFolder(dir);
}

}  // namespace

absl::StatusOr<std::string> MirrorState(const std::string& dir, Bucket& bucket, std::ostream& err) {
  PosixFiles files;
  // A new run needs an empty folder, so nothing is made in it before.
  RETURN_IF_ERROR(ServersIn(files, dir).status());
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkFolder> work, WorkFolder::Make(files, dir));
  const std::string own = work->own(), all = work->all();
  ASSIGN_OR_RETURN(const std::vector<ServerId> servers, TakeSnapshot(files, dir, own));
  const absl::Status found =
      bucket.Download(all, {"+ /server-*/LATEST", "+ /server-*/checkpoint-*/manifest.json"});
  // A folder that does not exist yet. The upload reports an S3 bucket that does not exist.
  if (!found.ok() && !absl::IsNotFound(found)) return found;
  if (const absl::Status same = CheckSameRun(files, StateFolderPath(own, servers[0]), all);
      !same.ok()) {
    return absl::Status(same.code(), absl::StrCat(bucket.url(), "/", same.message()));
  }
  RETURN_IF_ERROR(bucket.Upload(own, {"+ /server-*/checkpoint-*/**"}));
  // The decisions in the small files are never older than the newest checkpoint.
  RETURN_IF_ERROR(bucket.Replace(own, {"- /server-*/LATEST", "- /server-*/*/**", "+ **"}));
  RETURN_IF_ERROR(bucket.Replace(own, {"+ /server-*/LATEST"}));
  // From here on ALL has the manifests of the bucket as this process left it.
  for (const ServerId server : servers) {
    const std::string from = StateFolderPath(own, server), to = StateFolderPath(all, server);
    RETURN_IF_ERROR(files.MakeFolder(to));
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, from));
    for (const std::string& name : names) {
      RETURN_IF_ERROR(RemoveAll(absl::StrCat(to, "/", name)));
      RETURN_IF_ERROR(LinkCheckpoint(files, from, to, name, /*only_manifest=*/true));
    }
    RETURN_IF_ERROR(RemoveAll(absl::StrCat(to, "/", kLatest)));
    RETURN_IF_ERROR(LinkIfAny(files, from, to, kLatest));
  }
  const absl::StatusOr<Common> common = FindCommon(files, all);
  std::string line = absl::StrCat(bucket.url(), ": mirrored ", CountText(servers.size()));
  if (!common.ok()) {
    // Nothing is removed, because each checkpoint may become one of those that belong together.
    err << "warning: the servers' mirrored checkpoints do not belong together yet: "
        << OfBucket(common.status(), all, bucket).message() << std::endl;
    return line;
  }
  for (const ServerId server : servers) {
    const bool has_name = server.value < common->names.size();
    ASSIGN_OR_RETURN(const std::vector<std::string> rules,
                     RulesToRemove(files, server, own, all,
                                   has_name ? common->names[server.value] : std::string()));
    RETURN_IF_ERROR(bucket.Remove(rules));
  }
  return absl::StrCat(line, "; a fetch continues at ", common->steps);
}

absl::StatusOr<std::string> FetchState(const std::string& dir, std::optional<ServerId> server,
                                       Bucket& bucket, std::ostream& err) {
  PosixFiles files;
  // As all files of a state directory, the fetched ones are secret (PosixFiles).
  const mode_t old_mask = umask(077);
  const absl::Cleanup restore_mask = [old_mask] { umask(old_mask); };
  RETURN_IF_ERROR(files.MakeFolder(dir));
  RETURN_IF_ERROR(CheckVacant(files, dir, server));
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkFolder> work, WorkFolder::Make(files, dir));
  const std::string all = work->all();
  std::vector<std::string> rules = {"+ /job.textproto", "+ /server-*/**"};
  if (server.has_value()) rules = {absl::StrCat("+ /server-", server->value, "/**")};
  RETURN_IF_ERROR(bucket.Download(all, rules));
  const auto check = [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const std::vector<ServerId> servers, ServersIn(files, all));
    for (const ServerId fetched : servers) {
      RETURN_IF_ERROR(CheckFetched(files, StateFolderPath(all, fetched), err));
    }
    return server.has_value() ? CheckAlone(files, all, *server) : FitTogether(files, all);
  };
  const absl::StatusOr<std::string> text = check();
  if (!text.ok()) return OfBucket(text.status(), all, bucket);
  RETURN_IF_ERROR(Install(files, all, dir));
  return absl::StrCat(dir, ": fetched ", *text);
}

}  // namespace thinwire
