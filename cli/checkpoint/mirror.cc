#include "cli/checkpoint/mirror.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/checkpoint/state_dir.h"
#include "cli/checkpoint/work_folder.h"
#include "common/base/status_macros.h"
#include "server/durable/checkpoint.h"
#include "server/durable/checkpoint_choice.h"
#include "server/durable/saved_job.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

constexpr char kLatest[] = "LATEST";
// Files of a server's folder that a server reads beside its newest checkpoint.
constexpr const char* kSmallFiles[] = {"lead", "precision", "epoch"};
// How often a copy of a folder is begun again because the server removed a checkpoint meanwhile.
constexpr int kSnapshotTries = 5;

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

}  // namespace

absl::StatusOr<CommonCheckpoints> FindCommonCheckpoints(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(const CheckpointManifest first, FirstManifest(files, dir));
  // Without their logs, servers go back to their own newest checkpoints.
  const auto step = HasLog(first.join()) ? std::optional(Step{std::numeric_limits<uint64_t>::max()})
                                         : std::nullopt;
  CommonCheckpoints common;
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
  const absl::StatusOr<CommonCheckpoints> common = FindCommonCheckpoints(files, all);
  std::string line = absl::StrCat(bucket.url(), ": mirrored ", ServersText(servers.size()));
  if (!common.ok()) {
    // Nothing is removed, because each checkpoint may become one of those that belong together.
    err << "warning: the servers' mirrored checkpoints do not belong together yet: "
        << bucket.Named(common.status(), all).message() << std::endl;
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

}  // namespace thinwire
