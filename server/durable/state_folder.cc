#include "server/durable/state_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "proto/state.pb.h"
#include "server/durable/message_file.h"

namespace thinwire {
namespace {

constexpr char kRelayedFile[] = "relayed";
constexpr char kEpochFile[] = "epoch";

// Returns the contents of the file `epoch` of FOLDER; nullopt: there is no such file.
absl::StatusOr<std::optional<ServerEpoch>> ReadEpoch(Files& files, const std::string& folder) {
  ServerEpoch epoch;
  const absl::Status read =
      ReadMessage(files, absl::StrCat(folder, "/", kEpochFile), "the epoch of a server", epoch);
  if (absl::IsNotFound(read)) return std::nullopt;
  RETURN_IF_ERROR(read);
  return epoch;
}

// Makes the folder PATH and its missing parents, so that they survive a crash.
absl::Status MakeFolders(Files& files, const std::string& path) {
  const std::string parent = ParentFolder(path);
  absl::Status made = files.MakeFolder(path);
  if (absl::IsNotFound(made) && parent != path) {
    RETURN_IF_ERROR(MakeFolders(files, parent));
    made = files.MakeFolder(path);
  }
  RETURN_IF_ERROR(made);
  return files.SyncFolder(parent);
}

}  // namespace

std::string ParentFolder(const std::string& path) {
  std::filesystem::path folder(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // removes a slash at the end
  const std::string parent = folder.parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string StateFolderPath(const std::string& root, ServerId server) {
  return absl::StrCat(root, "/server-", server.value);
}

absl::StatusOr<StateFolder> OpenStateFolder(Files& files, const std::string& root,
                                            ServerId server) {
  const std::string path = StateFolderPath(root, server);
  RETURN_IF_ERROR(MakeFolders(files, path));
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(path + "/LOCK");
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(
        absl::StrCat("state_dir: another process of server ", server.value, " uses ", path));
  }
  RETURN_IF_ERROR(lock.status());
  return StateFolder{.path = path, .lock = *std::move(lock)};
}

absl::StatusOr<Epoch> NextEpoch(Files& files, const std::string& folder, absl::Time now,
                                Generation generation) {
  ASSIGN_OR_RETURN(std::optional<ServerEpoch> stored, ReadEpoch(files, folder));
  const uint64_t least = stored.has_value() ? stored->epoch() + kEpochDistance : 0;
  ServerEpoch epoch = std::move(stored).value_or(ServerEpoch());
  epoch.set_epoch(std::max(least, static_cast<uint64_t>(absl::ToUnixNanos(now))));
  epoch.set_generation(std::max(epoch.generation(), generation.value));
  RETURN_IF_ERROR(WriteMessage(files, folder, kEpochFile, epoch));
  return Epoch{epoch.epoch()};
}

absl::Status PrepareRelayed(Files& files, const std::string& folder, Step next) {
  RelayedSteps steps;
  steps.set_next(next.value);
  return PrepareMessage(files, folder, kRelayedFile, steps);
}

absl::Status StoreRelayed(Files& files, const std::string& folder) {
  return PutPreparedFile(files, folder, kRelayedFile);
}

absl::StatusOr<Step> ReadRelayed(Files& files, const std::string& folder) {
  constexpr char kExpected[] = "the relayed steps of an aggregator";
  const std::string path = absl::StrCat(folder, "/", kRelayedFile);
  RelayedSteps steps;
  const absl::Status read = ReadMessage(files, path, kExpected, steps);
  if (absl::IsNotFound(read)) return Step{};
  RETURN_IF_ERROR(read);
  // An empty file is a message without a step.
  if (steps.next() == 0) return absl::DataLossError(absl::StrCat(path, ": not ", kExpected));
  return Step{steps.next()};
}

absl::StatusOr<Generation> StoredGeneration(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::optional<ServerEpoch> stored, ReadEpoch(files, folder));
  return Generation{stored.has_value() ? stored->generation() : 0};
}

}  // namespace thinwire
