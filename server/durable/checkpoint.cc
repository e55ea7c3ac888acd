#include "server/durable/checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
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
#include "proto/job.pb.h"
#include "server/core/event.h"
#include "server/durable/log_record.h"

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

// Returns the step of the checkpoint of MANIFEST; nullopt: none, because the frontiers differ.
std::optional<Step> StepOf(const CheckpointManifest& manifest) {
  return manifest.has_step() ? std::optional(Step{manifest.step()}) : std::nullopt;
}

// Returns the step that the checkpoint of MANIFEST has completed at all shards; nullopt: there is
// no shard, and the checkpoint is that of no step.
std::optional<Step> CompletedStepOf(const CheckpointManifest& manifest) {
  std::optional<Step> least = StepOf(manifest);
  for (const CheckpointManifest::Shard& shard : manifest.shards()) {
    const Step frontier{shard.frontier()};
    least = std::min(frontier, least.value_or(frontier));
  }
  return least;
}

// Returns the checkpoints of FOLDER for which STEP_OF returns a step, in ascending order of their
// steps. Leaves those out that ListAlignedCheckpoints leaves out.
absl::StatusOr<std::vector<AlignedCheckpoint>> ListSteps(
    Files& files, const std::string& folder,
    std::optional<Step> (*step_of)(const CheckpointManifest&)) {
  struct Candidate {
    uint64_t generation = 0;
    AlignedCheckpoint checkpoint;
  };
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  std::vector<Candidate> candidates;
  for (const std::string& name : names) {
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(files, folder, name);
    if (!manifest.ok()) continue;
    const std::optional<Step> step = step_of(*manifest);
    if (step.has_value()) candidates.push_back({manifest->generation(), {*step, name}});
  }
  // In the order of writing within a generation.
  std::ranges::stable_sort(candidates, {}, &Candidate::generation);
  std::vector<AlignedCheckpoint> aligned;
  for (Candidate& candidate : candidates) {
    // A later checkpoint of a smaller step means that the servers went back to this step.
    while (!aligned.empty() && aligned.back().step >= candidate.checkpoint.step) aligned.pop_back();
    aligned.push_back(std::move(candidate.checkpoint));
  }
  return aligned;
}

// Adds the names of those of CHECKPOINTS that have one of STEPS to NAMES.
void AddNames(const std::vector<AlignedCheckpoint>& checkpoints, const std::vector<Step>& steps,
              std::set<std::string>& names) {
  for (const AlignedCheckpoint& checkpoint : checkpoints) {
    if (std::ranges::count(steps, checkpoint.step) > 0) names.insert(checkpoint.name);
  }
}

// Returns the names of the checkpoints that are kept because of their steps.
absl::StatusOr<std::set<std::string>> NamesOfSteps(Files& files, const std::string& folder,
                                                   const KeptCheckpoints& kept) {
  std::set<std::string> names;
  if (!kept.steps.empty()) {
    ASSIGN_OR_RETURN(const auto aligned, ListSteps(files, folder, StepOf));
    AddNames(aligned, kept.steps, names);
  }
  if (kept.retention.every > 0) {
    ASSIGN_OR_RETURN(const auto all, ListSteps(files, folder, CompletedStepOf));
    std::vector<Step> steps;
    for (const AlignedCheckpoint& checkpoint : all) steps.push_back(checkpoint.step);
    AddNames(all, FirstSteps(steps, kept.retention.every), names);
  }
  return names;
}

// Returns the mode with which a server continues from the checkpoint of MANIFEST; "" if it has no
// shard.
std::string ModeOf(const CheckpointManifest& manifest) {
  if (manifest.shards().empty()) return "";
  const CheckpointManifest::Shard& shard = manifest.shards(0);
  if (!shard.has_rule() && !shard.has_next_rule()) {
    return Consistency::Mode::Value_Name(manifest.join().config().consistency().mode());
  }
  const auto& rule = shard.has_next_rule() ? shard.next_rule() : shard.rule();
  return std::string(RuleOf(rule, /*max_workers=*/rule.workers()).rule.mode());
}

// Returns the name of the newest checkpoint of NAMES whose mode is not that of the last one, or an
// empty string.
std::string BeforeChangeOfMode(Files& files, const std::string& folder,
                               const std::vector<std::string>& names) {
  std::optional<std::string> newest;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const auto manifest = ReadManifest(files, folder, *name);
    if (!manifest.ok()) continue;
    const std::string mode = ModeOf(*manifest);
    if (!newest.has_value()) newest = mode;
    if (mode != *newest) return *name;
  }
  return "";
}

// Removes all checkpoints except KEPT, the newest healthy one and the one before the last change of
// the mode. NEWEST_IS_HEALTHY: whether the newest checkpoint is healthy.
absl::Status RemoveOld(Files& files, const std::string& folder, const KeptCheckpoints& kept,
                       bool newest_is_healthy) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  ASSIGN_OR_RETURN(const std::set<std::string> of_steps, NamesOfSteps(files, folder, kept));
  const std::string before_change = BeforeChangeOfMode(files, folder, names);
  bool found_healthy = newest_is_healthy;
  size_t kept_count = 0;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    bool healthy = false;
    if (!found_healthy) {
      const auto manifest = ReadManifest(files, folder, *name);
      healthy = manifest.ok() && manifest->healthy();
    }
    if (kept_count < kept.retention.newest_count || healthy || of_steps.contains(*name) ||
        *name == before_change) {
      ++kept_count;
      found_healthy |= healthy;
      continue;
    }
    RETURN_IF_ERROR(RemoveCheckpoint(files, folder, *name));
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
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, WriteNewest(files, folder, base, checkpoint));
  return RemoveOld(files, folder, kept, manifest.healthy());
}

absl::StatusOr<std::vector<AlignedCheckpoint>> ListAlignedCheckpoints(Files& files,
                                                                      const std::string& folder) {
  return ListSteps(files, folder, StepOf);
}

std::vector<Step> FirstSteps(const std::vector<Step>& steps, uint64_t every) {
  std::vector<Step> first;
  if (every == 0) return first;
  uint64_t last = 0;  // the number of the multiple before the last returned step
  for (const Step step : steps) {
    if (step.value / every == last) continue;
    last = step.value / every;
    first.push_back(step);
  }
  return first;
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
  return RemoveOld(files, folder, kept, /*newest_is_healthy=*/false);
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
