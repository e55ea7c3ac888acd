#include "server/durable/checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/memory/array_bytes.h"

namespace thinwire {
namespace {

constexpr char kLatest[] = "LATEST";
constexpr char kManifest[] = "manifest.json";
constexpr char kTemporary[] = ".tmp";

std::string CheckpointName(uint64_t number) { return absl::StrFormat("checkpoint-%020u", number); }

// Returns the number of the checkpoint called NAME, or nullopt if it is no name of a checkpoint.
std::optional<uint64_t> NumberOf(const std::string& name) {
  uint64_t number = 0;
  const size_t digits = std::min(name.size(), CheckpointName(0).size() - 20);
  if (!absl::SimpleAtoi(name.substr(digits), &number)) return std::nullopt;
  return CheckpointName(number) == name ? std::optional(number) : std::nullopt;
}

std::string In(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name);
}

// Returns a DataLoss error of the file PATH.
absl::Status Damaged(const std::string& path, const std::string& cause) {
  return absl::DataLossError(absl::StrCat(path, ": ", cause));
}

ByteChain BytesOf(const std::string& text) { return CopyArray(std::as_bytes(std::span(text))); }

// Reads a file that must exist.
absl::StatusOr<ByteChain> ReadPart(Files& files, const std::string& path) {
  absl::StatusOr<ByteChain> bytes = files.Read(path);
  if (absl::IsNotFound(bytes.status())) return Damaged(path, "missing");
  return bytes;
}

absl::StatusOr<std::string> ReadText(Files& files, const std::string& path) {
  ASSIGN_OR_RETURN(const ByteChain bytes, files.Read(path));
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(std::as_writable_bytes(std::span(text)));
  return text;
}

absl::Status WriteFile(Files& files, const std::string& path, const ByteChain& bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Sync();
}

// Removes the folder PATH and its files. PATH need not exist.
absl::Status RemoveFolder(Files& files, const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) RETURN_IF_ERROR(files.Remove(In(path, name)));
  return files.Remove(path);
}

// Removes everything that an interrupted or failed WriteCheckpoint left in FOLDER.
absl::Status RemoveTemporary(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, kTemporary)) continue;
    if (absl::StartsWith(name, kLatest)) RETURN_IF_ERROR(files.Remove(In(folder, name)));
    if (absl::StartsWith(name, "checkpoint-"))
      RETURN_IF_ERROR(RemoveFolder(files, In(folder, name)));
  }
  return absl::OkStatus();
}

// The line of LATEST for the checkpoint NAME with MANIFEST.
std::string LatestLine(const std::string& name, const CheckpointManifest& manifest) {
  return absl::StrCat(name, " ", manifest.manifest_crc32c(), "\n");
}

// The newest complete checkpoint.
struct Newest {
  std::string name;
  CheckpointManifest manifest;
};

absl::StatusOr<Newest> ReadNewest(Files& files, const std::string& folder) {
  const std::string path = In(folder, kLatest);
  const absl::StatusOr<std::string> line = ReadText(files, path);
  if (absl::IsNotFound(line.status())) {
    return absl::NotFoundError(absl::StrCat(folder, ": no checkpoint"));
  }
  RETURN_IF_ERROR(line.status());
  Newest newest = {.name = line->substr(0, line->find(' '))};
  if (!NumberOf(newest.name).has_value()) return Damaged(path, "names no checkpoint");
  ASSIGN_OR_RETURN(newest.manifest, ReadManifest(files, folder, newest.name));
  if (*line != LatestLine(newest.name, newest.manifest)) {
    return Damaged(path, absl::StrCat("does not match ", newest.name));
  }
  return newest;
}

bool HasEqualArrays(const CheckpointManifest::Shard& a, const CheckpointManifest::Shard& b) {
  return a.shard() == b.shard() && a.values() == b.values() && a.version() == b.version() &&
         a.has_published() == b.has_published() &&
         a.published().version() == b.published().version() &&
         a.published().publish_count() == b.published().publish_count();
}

// Returns the entry of BASE whose file has the arrays of ENTRY, or null. MANIFEST contains ENTRY.
const CheckpointManifest::Shard* EqualShard(const CheckpointManifest& base,
                                            const CheckpointManifest& manifest,
                                            const CheckpointManifest::Shard& entry) {
  if (base.run() != manifest.run() || base.generation() != manifest.generation()) return nullptr;
  const auto found = std::lower_bound(
      base.shards().begin(), base.shards().end(), entry.shard(),
      [](const CheckpointManifest::Shard& e, uint32_t shard) { return e.shard() < shard; });
  if (found == base.shards().end() || !HasEqualArrays(*found, entry)) return nullptr;
  return &*found;
}

// Writes the file of SAVED to the folder PATH and describes it in ENTRY. If the newest checkpoint
// BASE of FOLDER has a file with the same arrays, links that file.
absl::Status WriteShard(Files& files, const std::string& folder, const std::string& path,
                        const std::optional<Newest>& base, const CheckpointManifest& manifest,
                        const SavedShard& saved, CheckpointManifest::Shard& entry) {
  entry.set_file(ShardFileName(saved.shard, saved.state.store.version));
  if (base.has_value()) {
    const CheckpointManifest::Shard* const equal = EqualShard(base->manifest, manifest, entry);
    // Some file systems have no links; the file is then written like a new one.
    if (equal != nullptr &&
        files.Link(In(In(folder, base->name), equal->file()), In(path, entry.file())).ok()) {
      entry.set_file_bytes(equal->file_bytes());
      entry.set_file_crc32c(equal->file_crc32c());
      return absl::OkStatus();
    }
  }
  const ByteChain bytes = EncodeShardFile(saved);
  entry.set_file_bytes(bytes.size());
  entry.set_file_crc32c(HexCrc32c(bytes));
  return WriteFile(files, In(path, entry.file()), bytes);
}

// Writes the files of CHECKPOINT to the new folder PATH and makes them durable. Returns the
// manifest.
absl::StatusOr<CheckpointManifest> WriteFolder(Files& files, const std::string& folder,
                                               const std::string& path,
                                               const std::optional<Newest>& base,
                                               const Checkpoint& checkpoint) {
  RETURN_IF_ERROR(files.MakeFolder(path));
  CheckpointManifest manifest = ManifestOf(checkpoint);
  for (size_t i = 0; i < checkpoint.shards.size(); ++i) {
    RETURN_IF_ERROR(WriteShard(files, folder, path, base, manifest, checkpoint.shards[i],
                               *manifest.mutable_shards(static_cast<int>(i))));
  }
  const std::string text = PrintManifest(manifest);
  RETURN_IF_ERROR(WriteFile(files, In(path, kManifest), BytesOf(text)));
  RETURN_IF_ERROR(files.SyncFolder(path));
  return ParseManifest(text);
}

// Lets LATEST name the complete checkpoint NAME.
absl::Status Commit(Files& files, const std::string& folder, const std::string& name,
                    const CheckpointManifest& manifest) {
  return ReplaceFile(files, folder, kLatest, BytesOf(LatestLine(name, manifest)));
}

// Removes the checkpoint NAME.
absl::Status RemoveCheckpoint(Files& files, const std::string& folder, const std::string& name) {
  const std::string path = In(folder, name);
  // After the rename, no reader takes the folder for a checkpoint.
  RETURN_IF_ERROR(files.Rename(path, path + kTemporary));
  RETURN_IF_ERROR(files.SyncFolder(folder));
  return RemoveFolder(files, path + kTemporary);
}

// Removes the checkpoints that are not KEPT.
absl::Status RemoveOld(Files& files, const std::string& folder, const KeptCheckpoints& kept) {
  ASSIGN_OR_RETURN(const std::vector<ListedCheckpoint> all, ListManifests(files, folder));
  const std::set<std::string> names = NamesToKeep(all, kept);
  for (const ListedCheckpoint& checkpoint : all | std::views::reverse) {
    if (names.contains(checkpoint.name)) continue;
    RETURN_IF_ERROR(RemoveCheckpoint(files, folder, checkpoint.name));
  }
  return absl::OkStatus();
}

// Removes the complete checkpoint NAME, which could not be committed. If this fails, a later call of
// RemoveOld does it.
void RemoveUncommitted(Files& files, const std::string& folder, const std::string& name) {
  // LATEST may name it, although its folder was not flushed.
  const absl::StatusOr<std::string> line = ReadText(files, In(folder, kLatest));
  if (!line.ok() && !absl::IsNotFound(line.status())) return;
  if (line.ok() && absl::StartsWith(*line, name)) return;
  (void)RemoveCheckpoint(files, folder, name);
}

// Writes CHECKPOINT as the newest one of FOLDER. Links the files of BASE that have the arrays of
// its shards. Returns the manifest.
absl::StatusOr<CheckpointManifest> WriteNewest(Files& files, const std::string& folder,
                                               const std::optional<Newest>& base,
                                               const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  const std::string name = CheckpointName(names.empty() ? 1 : *NumberOf(names.back()) + 1);
  const std::string path = In(folder, name);
  auto manifest = WriteFolder(files, folder, path + kTemporary, base, checkpoint);
  if (!manifest.ok()) {
    // If this fails too, the next call removes the files.
    (void)RemoveTemporary(files, folder);
    return manifest.status();
  }
  RETURN_IF_ERROR(files.Rename(path + kTemporary, path));
  absl::Status status = files.SyncFolder(folder);
  if (status.ok()) status = Commit(files, folder, name, *manifest);
  if (status.ok()) return manifest;
  RemoveUncommitted(files, folder, name);
  return status;
}

// Writes the checkpoint NAME again, as the newest one and under GENERATION.
absl::Status WriteAgain(Files& files, const std::string& folder, const std::string& name,
                        Generation generation) {
  RETURN_IF_ERROR(RemoveTemporary(files, folder));
  ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadNamedCheckpoint(files, folder, name));
  Newest base = {.name = name};
  ASSIGN_OR_RETURN(base.manifest, ReadManifest(files, folder, name));
  checkpoint.run.generation = generation;
  // The arrays are the same, although the generation differs.
  base.manifest.set_generation(generation.value);
  return WriteNewest(files, folder, base, checkpoint).status();
}

}  // namespace

absl::Status WriteCheckpoint(Files& files, const std::string& folder, const Checkpoint& checkpoint,
                             const KeptCheckpoints& kept) {
  RETURN_IF_ERROR(RemoveTemporary(files, folder));
  std::optional<Newest> base;
  // If the newest checkpoint is damaged, the new one does not depend on it.
  if (absl::StatusOr<Newest> newest = ReadNewest(files, folder); newest.ok()) {
    base = *std::move(newest);
  }
  RETURN_IF_ERROR(WriteNewest(files, folder, base, checkpoint).status());
  return RemoveOld(files, folder, kept);
}

absl::StatusOr<std::vector<AlignedCheckpoint>> ListAlignedCheckpoints(Files& files,
                                                                      const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<ListedCheckpoint> all, ListManifests(files, folder));
  return AlignedCheckpoints(all);
}

absl::Status ContinueFrom(Files& files, const std::string& folder, Step step,
                          Generation generation) {
  ASSIGN_OR_RETURN(const std::vector<AlignedCheckpoint> aligned,
                   ListAlignedCheckpoints(files, folder));
  const auto found = std::ranges::find(aligned, step, &AlignedCheckpoint::step);
  if (found == aligned.end()) {
    return absl::NotFoundError(absl::StrCat(folder, ": no checkpoint of step ", step.value));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  RETURN_IF_ERROR(WriteAgain(files, folder, found->name, generation));
  // The old checkpoints after it belong to steps that the servers will repeat.
  for (const std::string& name : names) {
    if (name > found->name) RETURN_IF_ERROR(RemoveCheckpoint(files, folder, name));
  }
  return absl::OkStatus();
}

absl::Status ContinueFromNewest(Files& files, const std::string& folder, Generation generation,
                                const KeptCheckpoints& kept) {
  ASSIGN_OR_RETURN(const std::string name, NewestCheckpoint(files, folder));
  RETURN_IF_ERROR(WriteAgain(files, folder, name, generation));
  return RemoveOld(files, folder, kept);
}

absl::StatusOr<Checkpoint> ReadCheckpoint(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string name, NewestCheckpoint(files, folder));
  return ReadNamedCheckpoint(files, folder, name);
}

absl::StatusOr<std::vector<std::string>> ListCheckpoints(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, files.List(folder));
  std::erase_if(names, [](const std::string& name) { return !NumberOf(name).has_value(); });
  return names;  // ascending: the numbers in the names have equal lengths
}

absl::StatusOr<std::vector<ListedCheckpoint>> ListManifests(Files& files,
                                                            const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  std::vector<ListedCheckpoint> all;
  for (const std::string& name : names) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(files, folder, name);
    if (!manifest.ok() && !absl::IsDataLoss(manifest.status())) return manifest.status();
    all.push_back({.name = name});
    if (manifest.ok()) all.back().manifest = *std::move(manifest);
  }
  return all;
}

absl::StatusOr<std::string> NewestCheckpoint(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(Newest newest, ReadNewest(files, folder));
  return std::move(newest.name);
}

absl::StatusOr<CheckpointManifest> ReadManifest(Files& files, const std::string& folder,
                                                const std::string& name) {
  const std::string path = In(In(folder, name), kManifest);
  const absl::StatusOr<std::string> text = ReadText(files, path);
  if (absl::IsNotFound(text.status())) return Damaged(path, "missing");
  RETURN_IF_ERROR(text.status());
  absl::StatusOr<CheckpointManifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return Damaged(path, std::string(manifest.status().message()));
  return manifest;
}

absl::StatusOr<Checkpoint> ReadNamedCheckpoint(Files& files, const std::string& folder,
                                               const std::string& name) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(files, folder, name));
  absl::StatusOr<Checkpoint> checkpoint = CheckpointOf(manifest);
  const std::string path = In(folder, name);
  if (!checkpoint.ok()) {
    return Damaged(In(path, kManifest), std::string(checkpoint.status().message()));
  }
  for (int i = 0; i < manifest.shards_size(); ++i) {
    const CheckpointManifest::Shard& entry = manifest.shards(i);
    SavedShard& saved = checkpoint->shards[i];
    // The name is not taken from the manifest, so that a manifest cannot name other files.
    const std::string file = In(path, ShardFileName(saved.shard, saved.state.store.version));
    ASSIGN_OR_RETURN(const ByteChain bytes, ReadPart(files, file));
    if (bytes.size() != entry.file_bytes()) {
      return Damaged(file, absl::StrCat("wrong size (expected ", entry.file_bytes(), " bytes, got ",
                                        bytes.size(), ")"));
    }
    if (HexCrc32c(bytes) != entry.file_crc32c()) return Damaged(file, "wrong checksum");
    if (const absl::Status status = DecodeShardFile(bytes, saved); !status.ok()) {
      return Damaged(file, std::string(status.message()));
    }
    if (saved.state.store.masters.size() != entry.values() * sizeof(float)) {
      return Damaged(file, absl::StrCat("wrong number of masters (expected ", entry.values(), ")"));
    }
  }
  return checkpoint;
}

}  // namespace thinwire
