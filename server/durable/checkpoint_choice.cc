#include "server/durable/checkpoint_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/durable/checkpoint.h"
#include "server/durable/reshard.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

// Returns whether the job of MANIFEST is in mode sync or backup. An operator may have changed the
// mode of the job file.
bool ByRound(const CheckpointManifest& manifest) {
  if (!manifest.shards().empty() && manifest.shards(0).has_rule()) {
    return !manifest.shards(0).rule().by_push();
  }
  const Consistency::Mode::Value mode = manifest.join().config().consistency().mode();
  return mode == Consistency::Mode::sync || mode == Consistency::Mode::backup;
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
absl::StatusOr<std::vector<SavedManifest>> ReadManifests(Files& files, const std::string& folder,
                                                         uint64_t run) {
  const absl::StatusOr<std::string> newest = NewestCheckpoint(files, folder);
  if (absl::IsNotFound(newest.status())) {
    return absl::DataLossError(absl::StrCat(folder, ": no checkpoint (expected one per server)"));
  }
  RETURN_IF_ERROR(newest.status());
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(files, folder));
  std::ranges::reverse(names);
  std::vector<SavedManifest> candidates;
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
const SavedManifest* Find(const std::vector<SavedManifest>& candidates, Point point) {
  const auto found = std::ranges::find_if(
      candidates, [&](const SavedManifest& c) { return PointOf(c.manifest) == point; });
  return found == candidates.end() ? nullptr : &*found;
}

// Returns the newest checkpoints of one generation and step, or an empty vector if there are none.
CheckpointChoice NewestCommon(const std::vector<std::vector<SavedManifest>>& servers) {
  std::vector<Point> points;
  for (const std::vector<SavedManifest>& candidates : servers) {
    for (const SavedManifest& candidate : candidates) {
      if (const auto point = PointOf(candidate.manifest)) points.push_back(*point);
    }
  }
  std::ranges::sort(points, std::ranges::greater());
  for (const Point& point : points) {
    CheckpointChoice chosen;
    for (const std::vector<SavedManifest>& candidates : servers) {
      const SavedManifest* const found = Find(candidates, point);
      if (found != nullptr || candidates.empty()) chosen.push_back(found);
    }
    if (chosen.size() == servers.size()) return chosen;
  }
  return {};
}

// Returns whether the checkpoints are of one generation, every worker has left every shard, and the
// shards agree on the steps that each worker has finished. The frontiers of such shards may differ,
// because workers leave the servers in different orders.
bool EndedTogether(const CheckpointChoice& servers) {
  const CheckpointManifest::Shard* first = nullptr;
  for (const SavedManifest* server : servers) {
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
std::string StepsText(const std::vector<SavedManifest>& candidates) {
  std::vector<std::string> steps;
  for (const SavedManifest& candidate : candidates) {
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
std::string StepsOfServers(const SavedManifests& job) {
  std::vector<std::string> texts;
  for (size_t s = 0; s < job.servers.size(); ++s) {
    if (job.servers[s].empty()) continue;
    texts.push_back(absl::StrCat("server ", s, " has ", StepsText(job.servers[s])));
  }
  return absl::StrJoin(texts, "; ");
}

// Returns the newest candidate whose shards are at most at STEP, or null.
const SavedManifest* NewestUpTo(const std::vector<SavedManifest>& candidates, Step step) {
  const auto found = std::ranges::find_if(candidates, [step](const SavedManifest& candidate) {
    return std::ranges::all_of(candidate.manifest.shards(), [step](const auto& shard) {
      return shard.frontier() <= step.value;
    });
  });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace

bool HasLog(const JoinRequest& join) {
  return join.config().recovery().durability() == Recovery::Durability::log;
}

absl::StatusOr<CheckpointManifest> FirstManifest(Files& files, const std::string& dir) {
  const std::string folder = StateFolderPath(dir, ServerId{0});
  ASSIGN_OR_RETURN(const std::string name, NewestCheckpoint(files, folder));
  return ReadManifest(files, folder, name);
}

absl::StatusOr<SavedManifests> FindManifests(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(CheckpointManifest first, FirstManifest(files, dir));
  absl::StatusOr<Partition> partition = PartitionOfJoin(first.join());
  if (!partition.ok()) {
    return absl::DataLossError(absl::StrCat(StateFolderPath(dir, ServerId{0}), ": ",
                                            std::string(partition.status().message())));
  }
  SavedManifests job = {
      .first = std::move(first), .partition = *std::move(partition), .servers = {}};
  job.servers.resize(job.partition.server_count());
  for (uint32_t s = 0; s < job.servers.size(); ++s) {
    if (job.partition.ShardsOf(ServerId{s}).empty()) continue;
    ASSIGN_OR_RETURN(job.servers[s],
                     ReadManifests(files, StateFolderPath(dir, ServerId{s}), job.first.run()));
  }
  return job;
}

absl::StatusOr<CheckpointChoice> ChooseNewest(const std::string& dir, const SavedManifests& job,
                                              bool only_newest) {
  CheckpointChoice newest;
  for (const std::vector<SavedManifest>& candidates : job.servers) {
    newest.push_back(candidates.empty() ? nullptr : &candidates[0]);
  }
  if (!ByRound(job.first) || EndedTogether(newest)) return newest;
  CheckpointChoice common = NewestCommon(job.servers);
  if (!common.empty() && (!only_newest || common == newest)) return common;
  return absl::FailedPreconditionError(absl::StrCat(
      dir, ": the servers have no newest checkpoint of the same step (", StepsOfServers(job),
      "); resume the run with servers: ", job.servers.size(), " and stop it first"));
}

absl::StatusOr<CheckpointChoice> ChooseStep(const std::string& dir, SavedManifests& job,
                                            Step step) {
  const bool aligned = ByRound(job.first) && !HasLog(job.first.join());
  const std::string steps = StepsOfServers(job);
  if (aligned) {
    for (std::vector<SavedManifest>& candidates : job.servers) {
      std::erase_if(candidates, [step](const SavedManifest& candidate) {
        const auto point = PointOf(candidate.manifest);
        return !point.has_value() || point->second != step.value;
      });
    }
    CheckpointChoice common = NewestCommon(job.servers);
    if (!common.empty()) return common;
  } else {
    CheckpointChoice choice;
    for (const std::vector<SavedManifest>& candidates : job.servers) {
      const SavedManifest* const found = NewestUpTo(candidates, step);
      if (found != nullptr || candidates.empty()) choice.push_back(found);
    }
    if (choice.size() == job.servers.size()) return choice;
  }
  return absl::FailedPreconditionError(absl::StrCat(dir, ": not all servers have a checkpoint of ",
                                                    aligned ? "" : "at most ", "step ", step.value,
                                                    " (", steps, ")"));
}

}  // namespace thinwire
