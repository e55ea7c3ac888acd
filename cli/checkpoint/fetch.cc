#include "cli/checkpoint/fetch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/checkpoint/mirror.h"
#include "cli/checkpoint/state_dir.h"
#include "cli/checkpoint/work_folder.h"
#include "common/base/status_macros.h"
#include "server/durable/checkpoint.h"
#include "server/durable/checkpoint_choice.h"
#include "server/durable/files.h"
#include "server/durable/saved_job.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

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
    absl::Status status = ReadNamedCheckpoint(files, folder, name).status();
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
  ASSIGN_OR_RETURN(const CommonCheckpoints common, FindCommonCheckpoints(files, all));
  for (uint32_t s = 0; s < count; ++s) {
    // A server without shards may have no checkpoint.
    RETURN_IF_ERROR(files.MakeFolder(StateFolderPath(all, ServerId{s})));
  }
  const std::string text = absl::StrCat(ServersText(count), " at ", common.steps);
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
  absl::Status status =
      files.Rename(absl::StrCat(all, "/", kJobFile), absl::StrCat(dir, "/", kJobFile));
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  return files.SyncFolder(dir);
}

}  // namespace

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
  if (!text.ok()) return bucket.Named(text.status(), all);
  RETURN_IF_ERROR(Install(files, all, dir));
  return absl::StrCat(dir, ": fetched ", *text);
}

}  // namespace thinwire
