#include "server/durable/saved_job.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/memory/array_bytes.h"
#include "common/model/partition.h"
#include "server/durable/checkpoint.h"
#include "server/durable/event_log.h"
#include "server/durable/lead_file.h"
#include "server/durable/log_record.h"
#include "server/durable/reshard.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

constexpr char kReplacement[] = "replacement";
constexpr char kNew[] = ".new";
constexpr char kBefore[] = ".before-";
// In the file kReplacement: the shards are the same.
constexpr char kSameShards[] = "same_shards";

// A checkpoint of a server, by its name and its manifest.
struct Candidate {
  std::string name;
  CheckpointManifest manifest;
};

// The checkpoints of all servers of a job.
struct Candidates {
  CheckpointManifest first;  // of the newest checkpoint of server 0
  Partition partition;
  // By server number, the newest first. None if the server has no shards.
  std::vector<std::vector<Candidate>> servers;
};

// Returns whether the job of MANIFEST is in mode sync or backup. An operator may have changed the
// mode of the job file.
bool ByRound(const CheckpointManifest& manifest) {
  if (!manifest.shards().empty() && manifest.shards(0).has_rule()) {
    return !manifest.shards(0).rule().by_push();
  }
  const Consistency::Mode::Value mode = manifest.join().config().consistency().mode();
  return mode == Consistency::Mode::sync || mode == Consistency::Mode::backup;
}

bool HasLog(const JoinRequest& join) {
  return join.config().recovery().durability() == Recovery::Durability::log;
}

// Returns the generation and the step of a checkpoint, or nullopt if its shards have different
// frontiers or it has no shards.
using Point = std::pair<uint64_t, uint64_t>;
std::optional<Point> PointOf(const CheckpointManifest& manifest) {
  if (manifest.shards().empty()) return std::nullopt;
  const uint64_t step = manifest.shards(0).frontier();
  const bool equal = std::ranges::all_of(
      manifest.shards(), [step](const auto& shard) { return shard.frontier() == step; });
  return equal ? std::optional(Point(manifest.generation(), step)) : std::nullopt;
}

// Returns the checkpoints of the run RUN in FOLDER, the newest first. An older checkpoint that is
// damaged is skipped.
absl::StatusOr<std::vector<Candidate>> CandidatesOf(Files& files, const std::string& folder,
                                                    uint64_t run) {
  const absl::StatusOr<std::string> newest = NewestCheckpoint(files, folder);
  if (absl::IsNotFound(newest.status())) {
    return absl::DataLossError(absl::StrCat(folder, ": no checkpoint (expected one per server)"));
  }
  RETURN_IF_ERROR(newest.status());
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(files, folder));
  std::ranges::reverse(names);
  std::vector<Candidate> candidates;
  for (const std::string& name : names) {
    // A checkpoint above the newest one was being completed when its server ended.
    if (name > *newest) continue;
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(files, folder, name);
    if (name == *newest) RETURN_IF_ERROR(manifest.status());
    if (!manifest.ok()) continue;
    if (manifest->run() == run) candidates.push_back({name, *std::move(manifest)});
  }
  if (candidates.empty()) {
    return absl::DataLossError(absl::StrCat(folder, ": a checkpoint of another run"));
  }
  return candidates;
}

// Returns the candidate at POINT, or null.
const Candidate* Find(const std::vector<Candidate>& candidates, Point point) {
  const auto found = std::ranges::find_if(
      candidates, [&](const Candidate& c) { return PointOf(c.manifest) == point; });
  return found == candidates.end() ? nullptr : &*found;
}

// One checkpoint of each server; null for a server without shards.
using Choice = std::vector<const Candidate*>;

// Returns the newest checkpoints of one generation and step, or an empty vector if there are none.
Choice NewestCommon(const std::vector<std::vector<Candidate>>& servers) {
  std::vector<Point> points;
  for (const std::vector<Candidate>& candidates : servers) {
    for (const Candidate& candidate : candidates) {
      if (const auto point = PointOf(candidate.manifest)) points.push_back(*point);
    }
  }
  std::ranges::sort(points, std::ranges::greater());
  for (const Point& point : points) {
    Choice chosen;
    for (const std::vector<Candidate>& candidates : servers) {
      const Candidate* const found = Find(candidates, point);
      if (found != nullptr || candidates.empty()) chosen.push_back(found);
    }
    if (chosen.size() == servers.size()) return chosen;
  }
  return {};
}

// Returns whether the checkpoints are of one generation, every worker has left every shard, and the
// shards agree on the steps that each worker has finished. The frontiers of such shards may differ,
// because workers leave the servers in different orders.
bool EndedTogether(const Choice& servers) {
  const CheckpointManifest::Shard* first = nullptr;
  for (const Candidate* server : servers) {
    if (server == nullptr) continue;
    if (server->manifest.generation() != servers[0]->manifest.generation()) return false;
    for (const CheckpointManifest::Shard& shard : server->manifest.shards()) {
      if (first == nullptr) first = &shard;
      const auto equal = [](const auto& a, const auto& b) {
        const bool left = a.incarnation() == 0 || a.left();
        return left && a.incarnation() == b.incarnation() && a.next() == b.next();
      };
      if (!std::ranges::equal(shard.workers(), first->workers(), equal)) return false;
    }
  }
  return true;
}

// Returns the steps of a server's checkpoints: "steps 12, 10".
std::string StepsText(const std::vector<Candidate>& candidates) {
  std::vector<std::string> steps;
  for (const Candidate& candidate : candidates) {
    uint64_t least = std::numeric_limits<uint64_t>::max(), most = 0;
    for (const CheckpointManifest::Shard& shard : candidate.manifest.shards()) {
      least = std::min(least, shard.frontier());
      most = std::max(most, shard.frontier());
    }
    if (least <= most)
      steps.push_back(least == most ? absl::StrCat(least) : absl::StrCat(least, "-", most));
  }
  return absl::StrCat("steps ", absl::StrJoin(steps, ", "));
}

// Returns the steps of the checkpoints of all servers: "server 0 has steps 12, 10; server 1 ...".
std::string StepsOfServers(const Candidates& job) {
  std::vector<std::string> texts;
  for (size_t s = 0; s < job.servers.size(); ++s) {
    if (job.servers[s].empty()) continue;
    texts.push_back(absl::StrCat("server ", s, " has ", StepsText(job.servers[s])));
  }
  return absl::StrJoin(texts, "; ");
}

// Returns the checkpoints that belong together. ONLY_NEWEST: older ones lack events.
absl::StatusOr<Choice> Choose(const std::string& dir, const Candidates& job, bool only_newest) {
  Choice newest;
  for (const std::vector<Candidate>& candidates : job.servers) {
    newest.push_back(candidates.empty() ? nullptr : &candidates[0]);
  }
  if (!ByRound(job.first) || EndedTogether(newest)) return newest;
  Choice common = NewestCommon(job.servers);
  if (!common.empty() && (!only_newest || common == newest)) return common;
  return absl::FailedPreconditionError(absl::StrCat(
      dir, ": the servers have no newest checkpoint of the same step (", StepsOfServers(job),
      "); resume the run with servers: ", job.servers.size(), " and stop it first"));
}

// Returns the newest candidate whose shards are at most at STEP, or null.
const Candidate* NewestUpTo(const std::vector<Candidate>& candidates, Step step) {
  const auto found = std::ranges::find_if(candidates, [step](const Candidate& candidate) {
    return std::ranges::all_of(candidate.manifest.shards(), [step](const auto& shard) {
      return shard.frontier() <= step.value;
    });
  });
  return found == candidates.end() ? nullptr : &*found;
}

// Returns the checkpoints to go back to (RestoreSavedJob).
absl::StatusOr<Choice> ChooseStep(const std::string& dir, Candidates& job, Step step) {
  const bool aligned = ByRound(job.first) && !HasLog(job.first.join());
  const std::string steps = StepsOfServers(job);
  if (aligned) {
    for (std::vector<Candidate>& candidates : job.servers) {
      std::erase_if(candidates, [step](const Candidate& candidate) {
        const auto point = PointOf(candidate.manifest);
        return !point.has_value() || point->second != step.value;
      });
    }
    Choice common = NewestCommon(job.servers);
    if (!common.empty()) return common;
  } else {
    Choice choice;
    for (const std::vector<Candidate>& candidates : job.servers) {
      const Candidate* const found = NewestUpTo(candidates, step);
      if (found != nullptr || candidates.empty()) choice.push_back(found);
    }
    if (choice.size() == job.servers.size()) return choice;
  }
  return absl::FailedPreconditionError(absl::StrCat(dir, ": not all servers have a checkpoint of ",
                                                    aligned ? "" : "at most ", "step ", step.value,
                                                    " (", steps, ")"));
}

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

// Returns the manifest of the newest checkpoint of server 0, which describes the whole job.
absl::StatusOr<CheckpointManifest> FirstManifest(Files& files, const std::string& dir) {
  const std::string folder = StateFolderPath(dir, ServerId{0});
  ASSIGN_OR_RETURN(const std::string name, NewestCheckpoint(files, folder));
  return ReadManifest(files, folder, name);
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

absl::StatusOr<Candidates> FindCandidates(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(CheckpointManifest first, FirstManifest(files, dir));
  absl::StatusOr<Partition> partition = PartitionOfJoin(first.join());
  if (!partition.ok()) {
    return absl::DataLossError(absl::StrCat(StateFolderPath(dir, ServerId{0}), ": ",
                                            std::string(partition.status().message())));
  }
  Candidates job = {.first = std::move(first), .partition = *std::move(partition), .servers = {}};
  job.servers.resize(job.partition.server_count());
  for (uint32_t s = 0; s < job.servers.size(); ++s) {
    if (job.partition.ShardsOf(ServerId{s}).empty()) continue;
    ASSIGN_OR_RETURN(job.servers[s],
                     CandidatesOf(files, StateFolderPath(dir, ServerId{s}), job.first.run()));
  }
  return job;
}

// Reads the checkpoints CHOSEN to SAVED.
absl::Status ReadChosen(Files& files, const std::string& dir, const Choice& chosen,
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

absl::StatusOr<std::vector<std::string>> ChooseCheckpoints(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(const Candidates job, FindCandidates(files, dir));
  ASSIGN_OR_RETURN(const Choice chosen, Choose(dir, job, /*only_newest=*/false));
  std::vector<std::string> names;
  for (const Candidate* candidate : chosen) {
    names.push_back(candidate == nullptr ? "" : candidate->name);
  }
  return names;
}

absl::StatusOr<SavedJob> ReadSavedJob(Files& files, const std::string& dir) {
  SavedJob saved;
  ASSIGN_OR_RETURN(saved.locks, LockFolders(files, dir));
  ASSIGN_OR_RETURN(const Candidates job, FindCandidates(files, dir));
  const bool has_log = HasLog(job.first.join());
  ASSIGN_OR_RETURN(const Choice chosen, Choose(dir, job, /*only_newest=*/has_log));
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
  ASSIGN_OR_RETURN(Candidates job, FindCandidates(files, dir));
  const JoinRequest& join = job.first.join();
  if (join.config().compression().push() == Compression::Codec::adaptive) {
    return absl::FailedPreconditionError(absl::StrCat(
        dir,
        ": push: adaptive: cannot go back (expected another codec: its trials are not part of "
        "a checkpoint)"));
  }
  // Processes of every earlier generation are older.
  uint64_t newest = 0;
  for (const std::vector<Candidate>& candidates : job.servers) {
    for (const Candidate& candidate : candidates) {
      newest = std::max(newest, candidate.manifest.generation());
    }
  }
  ASSIGN_OR_RETURN(const Choice chosen, ChooseStep(dir, job, step));
  RETURN_IF_ERROR(ReadChosen(files, dir, chosen, saved));
  saved.servers[0].run.generation = Generation{newest};
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> servers,
                   Reshard(saved.servers, join.servers(), join.shard_size()));
  RestoredJob restored = {.least_step = saved.least_step, .largest_step = saved.largest_step};
  ASSIGN_OR_RETURN(restored.replacement, ReplaceSavedJob(files, dir, servers, Shards::kSame));
  return restored;
}

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
