#include "server/durable/job_replacement.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/memory/array_bytes.h"
#include "server/durable/checkpoint.h"
#include "server/durable/lead_file.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

constexpr char kReplacement[] = "replacement";
constexpr char kNew[] = ".new";
constexpr char kBefore[] = ".before-";
// In the file kReplacement: the shards are the same.
constexpr char kSameShards[] = "same_shards";

// Returns 3 for "server-3" with the prefix START "server-", and nullopt for any other name.
std::optional<uint32_t> NumberOf(const std::string& name, const std::string& start) {
  uint32_t number = 0;
  if (!absl::StartsWith(name, start) || !absl::SimpleAtoi(name.substr(start.size()), &number) ||
      absl::StrCat(start, number) != name) {
    return std::nullopt;
  }
  return number;
}

// Removes the file or folder PATH with everything in it. PATH need not exist.
absl::Status RemoveTree(Files& files, const std::string& path) {
  if (files.Remove(path).ok()) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    RETURN_IF_ERROR(RemoveTree(files, absl::StrCat(path, "/", name)));
  }
  return files.Remove(path);
}

// Returns the smallest number that no folder of an earlier replacement has.
uint64_t NextNumber(const std::vector<std::string>& names) {
  uint64_t next = 1;
  for (const std::string& name : names) {
    const size_t at = name.find(kBefore);
    uint64_t number = 0;
    if (at == std::string::npos) continue;
    if (absl::SimpleAtoi(name.substr(at + sizeof(kBefore) - 1), &number)) {
      next = std::max(next, number + 1);
    }
  }
  return next;
}

}  // namespace

absl::StatusOr<Replacement> ReplaceSavedJob(Files& files, const std::string& dir,
                                            std::span<const Checkpoint> servers, Shards shards) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(dir));
  Replacement replacement = {.number = NextNumber(names)};
  for (const std::string& name : names) {
    replacement.moved |= NumberOf(name, "server-").has_value();
    if (absl::EndsWith(name, kNew)) {
      RETURN_IF_ERROR(RemoveTree(files, absl::StrCat(dir, "/", name)));
    }
  }
  for (const Checkpoint& checkpoint : servers) {
    const std::string folder = StateFolderPath(dir, checkpoint.server) + kNew;
    RETURN_IF_ERROR(files.MakeFolder(folder));
    RETURN_IF_ERROR(WriteCheckpoint(files, folder, checkpoint));
  }
  // The decisions of the lead do not depend on the servers. They are newer than the checkpoint.
  ASSIGN_OR_RETURN(std::optional<LeadState> lead,
                   ReadLeadState(files, StateFolderPath(dir, ServerId{0}), servers[0].run.run));
  if (lead.has_value()) {
    // No process follows the deals since the checkpoint any more, and they would delay new ones.
    if (lead->deals_size() > 0) {
      lead->mutable_deals()->Assign(servers[0].deals.begin(), servers[0].deals.end());
    }
    RETURN_IF_ERROR(WriteLeadState(files, StateFolderPath(dir, ServerId{0}) + kNew, *lead));
  }
  RETURN_IF_ERROR(files.SyncFolder(dir));
  // From this file on, the new folders are the state of the job.
  const std::string text =
      absl::StrCat(servers.size(), " ", replacement.number, shards == Shards::kSame ? " " : "",
                   shards == Shards::kSame ? kSameShards : "", "\n");
  RETURN_IF_ERROR(ReplaceFile(files, dir, kReplacement, CopyArray(std::as_bytes(std::span(text)))));
  RETURN_IF_ERROR(FinishReplacement(files, dir));
  return replacement;
}

absl::Status FinishReplacement(Files& files, const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kReplacement);
  const absl::StatusOr<ByteChain> bytes = files.Read(path);
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  RETURN_IF_ERROR(bytes.status());
  std::string text(bytes->size(), '\0');
  bytes->CopyTo(std::as_writable_bytes(std::span(text)));
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"));
  uint32_t server_count = 0;
  uint64_t number = 0;
  const bool same_shards = words.size() == 4 && words[2] == kSameShards;
  if ((words.size() != 3 && !same_shards) || !absl::SimpleAtoi(words[0], &server_count) ||
      !absl::SimpleAtoi(words[1], &number)) {
    return absl::DataLossError(absl::StrCat(path, ": not the number of servers and a number"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(dir));
  for (const std::string& name : names) {
    const std::optional<uint32_t> server = NumberOf(name, "server-");
    const bool is_old = server.has_value() &&
                        (*server >= server_count || std::ranges::count(names, name + kNew) > 0);
    // With other shards, the residuals of a worker belong to the old ones.
    if (!is_old && (same_shards || !NumberOf(name, "worker-").has_value())) continue;
    const std::string folder = absl::StrCat(dir, "/", name);
    RETURN_IF_ERROR(files.Rename(folder, absl::StrCat(folder, kBefore, number)));
  }
  // No new folder takes its place before the old ones are durably aside.
  RETURN_IF_ERROR(files.SyncFolder(dir));
  for (uint32_t s = 0; s < server_count; ++s) {
    const std::string folder = StateFolderPath(dir, ServerId{s});
    if (std::ranges::count(names, absl::StrCat("server-", s, kNew)) == 0) continue;
    RETURN_IF_ERROR(files.Rename(folder + kNew, folder));
  }
  RETURN_IF_ERROR(files.SyncFolder(dir));
  RETURN_IF_ERROR(files.Remove(path));
  return files.SyncFolder(dir);
}

}  // namespace thinwire
