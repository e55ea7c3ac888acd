#include "server/durable/saved_job.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "server/durable/checkpoint.h"
#include "server/durable/checkpoint_choice.h"
#include "server/durable/event_log.h"
#include "server/durable/log_record.h"
#include "server/durable/reshard.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

// Adds a member of the event log to CHECKPOINT.
void AddMember(const MemberRecord& member, Checkpoint& checkpoint) {
  auto place =
      std::ranges::lower_bound(checkpoint.members, member.worker, {}, &MemberRecord::worker);
  if (place == checkpoint.members.end() || place->worker != member.worker) {
    checkpoint.members.insert(place, member);
  } else {
    *place = member;
  }
}

// Applies the records of the event log in FOLDER after CHECKPOINT. Errors: FailedPrecondition if a
// record is an event that CHECKPOINT does not contain.
absl::Status ReadRest(Files& files, const std::string& folder, const Partition& partition,
                      Checkpoint& checkpoint) {
  std::map<ShardId, LogSequence> applied;
  uint32_t worker_count = 0;
  for (const SavedShard& saved : checkpoint.shards) {
    applied[saved.shard] = saved.applied;
    worker_count = static_cast<uint32_t>(saved.state.workers.size());
  }
  const auto value_count = [&](ShardId shard) -> std::optional<size_t> {
    if (!applied.contains(shard) || shard.value >= partition.shard_count()) return std::nullopt;
    return partition.value_count(shard);
  };
  bool has_events = false;
  const auto apply = [&](LogSequence sequence, const ByteChain& bytes) -> absl::Status {
    ASSIGN_OR_RETURN(const LogRecord record, DecodeRecord(bytes, worker_count, value_count));
    if (const auto* event = std::get_if<ShardRecord>(&record)) {
      has_events |= sequence > applied[event->shard];
    } else if (const auto* member = std::get_if<MemberRecord>(&record)) {
      AddMember(*member, checkpoint);
    } else if (const auto* deal = std::get_if<DealRecord>(&record)) {
      // The checkpoint may contain the deal already.
      const bool known =
          !checkpoint.deals.empty() && checkpoint.deals.back().number() >= deal->deal.number();
      if (!known) checkpoint.deals.push_back(deal->deal);
    } else if (const auto* lead = std::get_if<LeadRecord>(&record)) {
      checkpoint.lead = *lead;
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ReplayLog(files, folder, checkpoint.next, apply).status());
  if (!has_events) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder,
      ": the event log has events after the newest checkpoint; resume the run with servers: ",
      partition.server_count(), " and stop it first"));
}

absl::StatusOr<std::unique_ptr<FileLock>> LockFolder(Files& files, const std::string& folder,
                                                     uint32_t server) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (absl::IsNotFound(names.status())) {
    return absl::DataLossError(
        absl::StrCat(folder, ": missing (expected the folder of server ", server, ")"));
  }
  RETURN_IF_ERROR(names.status());
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(folder + "/LOCK");
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(
        absl::StrCat(folder, ": a process of server ", server, " uses this folder"));
  }
  return lock;
}

// Locks the folders of all servers.
absl::StatusOr<std::vector<std::unique_ptr<FileLock>>> LockFolders(Files& files,
                                                                   const std::string& dir) {
  ASSIGN_OR_RETURN(const CheckpointManifest first, FirstManifest(files, dir));
  std::vector<std::unique_ptr<FileLock>> locks;
  for (uint32_t s = 0; s < first.join().servers(); ++s) {
    ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                     LockFolder(files, StateFolderPath(dir, ServerId{s}), s));
    locks.push_back(std::move(lock));
  }
  return locks;
}

// Reads the checkpoints CHOSEN to SAVED.
absl::Status ReadChosen(Files& files, const std::string& dir, const CheckpointChoice& chosen,
                        SavedJob& saved) {
  saved.least_step = Step{std::numeric_limits<uint64_t>::max()};
  for (uint32_t s = 0; s < chosen.size(); ++s) {
    Checkpoint checkpoint;
    if (chosen[s] == nullptr) {
      checkpoint = {.server = ServerId{s}, .run = saved.servers[0].run};
    } else {
      ASSIGN_OR_RETURN(checkpoint, ReadNamedCheckpoint(files, StateFolderPath(dir, ServerId{s}),
                                                       chosen[s]->name));
    }
    for (const SavedShard& shard : checkpoint.shards) {
      saved.least_step = std::min(saved.least_step, shard.state.frontier);
      saved.largest_step = std::max(saved.largest_step, shard.state.frontier);
    }
    saved.servers.push_back(std::move(checkpoint));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ChooseCheckpoints(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(const SavedManifests job, FindManifests(files, dir));
  ASSIGN_OR_RETURN(const CheckpointChoice chosen, ChooseNewest(dir, job, /*only_newest=*/false));
  std::vector<std::string> names;
  for (const SavedManifest* candidate : chosen) {
    names.push_back(candidate == nullptr ? "" : candidate->name);
  }
  return names;
}

absl::StatusOr<SavedJob> ReadSavedJob(Files& files, const std::string& dir) {
  SavedJob saved;
  ASSIGN_OR_RETURN(saved.locks, LockFolders(files, dir));
  ASSIGN_OR_RETURN(const SavedManifests job, FindManifests(files, dir));
  const bool has_log = HasLog(job.first.join());
  ASSIGN_OR_RETURN(const CheckpointChoice chosen, ChooseNewest(dir, job, /*only_newest=*/has_log));
  RETURN_IF_ERROR(ReadChosen(files, dir, chosen, saved));
  if (!has_log) return saved;
  for (Checkpoint& checkpoint : saved.servers) {
    if (checkpoint.shards.empty()) continue;
    RETURN_IF_ERROR(
        ReadRest(files, StateFolderPath(dir, checkpoint.server), job.partition, checkpoint));
  }
  return saved;
}

absl::StatusOr<RestoredJob> RestoreSavedJob(Files& files, const std::string& dir, Step step) {
  RETURN_IF_ERROR(FinishReplacement(files, dir));
  SavedJob saved;
  ASSIGN_OR_RETURN(saved.locks, LockFolders(files, dir));
  ASSIGN_OR_RETURN(SavedManifests job, FindManifests(files, dir));
  const JoinRequest& join = job.first.join();
  if (join.config().compression().push() == Compression::Codec::adaptive) {
    return absl::FailedPreconditionError(absl::StrCat(
        dir,
        ": push: adaptive: cannot go back (expected another codec: its trials are not part of "
        "a checkpoint)"));
  }
  // Processes of every earlier generation are older.
  uint64_t newest = 0;
  for (const std::vector<SavedManifest>& candidates : job.servers) {
    for (const SavedManifest& candidate : candidates) {
      newest = std::max(newest, candidate.manifest.generation());
    }
  }
  ASSIGN_OR_RETURN(const CheckpointChoice chosen, ChooseStep(dir, job, step));
  RETURN_IF_ERROR(ReadChosen(files, dir, chosen, saved));
  saved.servers[0].run.generation = Generation{newest};
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> servers,
                   Reshard(saved.servers, join.servers(), join.shard_size()));
  RestoredJob restored = {.least_step = saved.least_step, .largest_step = saved.largest_step};
  ASSIGN_OR_RETURN(restored.replacement, ReplaceSavedJob(files, dir, servers, Shards::kSame));
  return restored;
}

}  // namespace thinwire
