#include "server/durable/reshard.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/codec/sparse/index_list.h"
#include "common/memory/array_bytes.h"
#include "proto/join_tensors.h"

namespace thinwire {
namespace {

// Every array of a shard that is cut anew has values of this size.
constexpr size_t kValueBytes = 4;

// Consecutive values of a tensor that an old shard has.
struct Piece {
  uint64_t offset = 0;  // in the tensor
  uint64_t count = 0;
  const SavedShard* shard = nullptr;
  uint64_t position = 0;  // of the first value in the shard
};
// The pieces of each tensor, by offset.
using Pieces = std::vector<std::vector<Piece>>;

// Returns the array of a shard, empty if the shard has none.
using ArrayOf = std::function<ByteChain(const ShardSnapshot&)>;

absl::Status Damaged(ServerId server, const std::string& problem) {
  return absl::DataLossError(absl::StrCat("server ", server.value, ": ", problem));
}

// Checks that CHECKPOINT is that of SERVER, in the run of FIRST, and has exactly its shards.
absl::Status CheckServer(const Checkpoint& checkpoint, const Checkpoint& first,
                         const Partition& partition, ServerId server) {
  if (checkpoint.server != server || checkpoint.run.run != first.run.run) {
    return Damaged(server,
                   absl::StrFormat("another server's checkpoint (expected server %u of run %016x, "
                                   "got server %u of run %016x)",
                                   server.value, first.run.run.value, checkpoint.server.value,
                                   checkpoint.run.run.value));
  }
  const std::vector<ShardId> expected = partition.ShardsOf(server);
  if (!std::ranges::equal(checkpoint.shards, expected, {}, &SavedShard::shard)) {
    return Damaged(server, absl::StrCat("other shards than the job's (expected ", expected.size(),
                                        " shards, got ", checkpoint.shards.size(), ")"));
  }
  for (const SavedShard& saved : checkpoint.shards) {
    const uint64_t bytes = partition.value_count(saved.shard) * kValueBytes;
    const uint64_t got = saved.state.store.masters.size();
    if (got != bytes) {
      return Damaged(server,
                     absl::StrCat("shard ", saved.shard.value, ": masters: wrong size (expected ",
                                  bytes, " bytes, got ", got, ")"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Pieces> PiecesOf(std::span<const Checkpoint> servers, const Partition& partition) {
  if (servers.size() != partition.server_count()) {
    return absl::DataLossError(absl::StrCat("servers: wrong number of checkpoints (expected ",
                                            partition.server_count(), ", got ", servers.size(),
                                            ")"));
  }
  Pieces pieces(partition.tensors().size());
  for (uint32_t s = 0; s < servers.size(); ++s) {
    RETURN_IF_ERROR(CheckServer(servers[s], servers[0], partition, ServerId{s}));
    for (const SavedShard& saved : servers[s].shards) {
      uint64_t position = 0;
      for (const Segment& segment : partition.segments(saved.shard)) {
        pieces[segment.tensor].push_back({segment.offset, segment.count, &saved, position});
        position += segment.count;
      }
    }
  }
  for (std::vector<Piece>& of_tensor : pieces) std::ranges::sort(of_tensor, {}, &Piece::offset);
  return pieces;
}

// Returns the pieces that SEGMENTS consist of, in order. PIECES cover every tensor.
std::vector<Piece> Cut(const Pieces& pieces, std::span<const Segment> segments) {
  std::vector<Piece> cut;
  for (const Segment& segment : segments) {
    const uint64_t end = segment.offset + segment.count;
    const std::vector<Piece>& of_tensor = pieces[segment.tensor];
    // The first piece after the segment's first value; the piece before it has this value.
    auto piece = std::ranges::upper_bound(of_tensor, segment.offset, {}, &Piece::offset) - 1;
    for (; piece != of_tensor.end() && piece->offset < end; ++piece) {
      const uint64_t first = std::max(segment.offset, piece->offset);
      const uint64_t last = std::min(end, piece->offset + piece->count);
      cut.push_back({first, last - first, piece->shard, piece->position + first - piece->offset});
    }
  }
  return cut;
}

// Returns the array NAME of the new shard that consists of CUT. Errors: DataLoss if an old shard
// has an array of another size.
absl::StatusOr<ByteChain> Join(std::span<const Piece> cut, const std::string& name,
                               const ArrayOf& array_of) {
  ByteChain joined;
  const bool present = !array_of(cut[0].shard->state).empty();
  for (const Piece& piece : cut) {
    const ByteChain array = array_of(piece.shard->state);
    const size_t expected = present ? piece.shard->state.store.masters.size() : 0;
    if (array.size() != expected) {
      return absl::DataLossError(absl::StrCat("shard ", piece.shard->shard.value, ": ", name,
                                              ": wrong size (expected ", expected, " bytes, got ",
                                              array.size(), ")"));
    }
    if (present) joined.Append(array.Sub(piece.position * kValueBytes, piece.count * kValueBytes));
  }
  return joined;
}

// Returns the array `last` with each update number increased by BY, modulo 2^32. The distance of
// each number to the shard's version then stays the same.
ByteChain Shifted(const ByteChain& last, uint32_t by) {
  if (by == 0 || last.empty()) return last;
  std::vector<uint32_t> numbers(last.size() / kValueBytes);
  last.CopyTo(std::as_writable_bytes(std::span(numbers)));
  for (uint32_t& number : numbers) number += by;
  return CopyArray(std::as_bytes(std::span(numbers)));
}

// The progress of the whole job: that of the shard that is furthest behind.
struct Progress {
  Step frontier;
  std::vector<WorkerRecord> workers;  // all have left
};

// Merges the row of an old shard into ROW. Both rows are those of the same worker.
void Merge(const WorkerRecord& old, WorkerRecord& row) {
  if (old.incarnation == Incarnation{}) return;
  row.next = row.left ? std::min(row.next, old.next) : old.next;
  row.incarnation = std::max(row.incarnation, old.incarnation);
  row.left = true;
}

// Returns the progress of a job with at least one shard. Errors: DataLoss if the shards have
// different numbers of workers.
absl::StatusOr<Progress> ProgressOf(std::span<const Checkpoint> servers) {
  std::optional<Progress> progress;
  for (const Checkpoint& server : servers) {
    for (const SavedShard& saved : server.shards) {
      const std::vector<WorkerRecord>& rows = saved.state.workers;
      if (!progress.has_value()) {
        progress = Progress{saved.state.frontier, std::vector<WorkerRecord>(rows.size())};
      }
      if (rows.size() != progress->workers.size()) {
        return Damaged(
            server.server,
            absl::StrCat("shard ", saved.shard.value, ": workers: wrong number (expected ",
                         progress->workers.size(), ", got ", rows.size(), ")"));
      }
      progress->frontier = std::min(progress->frontier, saved.state.frontier);
      for (size_t i = 0; i < rows.size(); ++i) Merge(rows[i], progress->workers[i]);
    }
  }
  return *progress;
}

// Merges everything except the arrays and the progress of the old state OLD into STATE.
absl::Status Merge(const ShardSnapshot& old, ShardSnapshot& state) {
  if (old.published.has_value() != state.published.has_value()) {
    return absl::DataLossError("published: only some shards have published parameters");
  }
  StoreSnapshot& store = state.store;
  store.version = std::max(store.version, old.store.version);
  store.examples = std::max(store.examples, old.store.examples);
  store.saturated |= old.store.saturated;
  store.saturated_updates = std::max(store.saturated_updates, old.store.saturated_updates);
  if (old.published.has_value()) {
    state.published->version = std::max(state.published->version, old.published->version);
    state.published->publish_count =
        std::max(state.published->publish_count, old.published->publish_count);
  }
  return absl::OkStatus();
}

// Returns the state of the new shard that consists of CUT, without its rule.
absl::StatusOr<ShardSnapshot> NewState(std::span<const Piece> cut, const Progress& progress) {
  const ShardSnapshot& first = cut[0].shard->state;
  ShardSnapshot state = {.frontier = progress.frontier, .workers = progress.workers};
  if (first.published.has_value()) state.published.emplace();
  state.store.planned_examples = first.store.planned_examples;
  const size_t slot_count = first.store.updater.slots.size();
  for (const Piece& piece : cut) {
    const ShardSnapshot& old = piece.shard->state;
    RETURN_IF_ERROR(Merge(old, state));
    if (old.store.updater.slots.size() == slot_count) continue;
    return absl::DataLossError(absl::StrCat("shard ", piece.shard->shard.value,
                                            ": wrong number of slots (expected ", slot_count,
                                            ", got ", old.store.updater.slots.size(), ")"));
  }

  const auto masters = [](const ShardSnapshot& old) { return old.store.masters; };
  ASSIGN_OR_RETURN(state.store.masters, Join(cut, "masters", masters));
  UpdaterSnapshot& updater = state.store.updater;
  for (size_t i = 0; i < slot_count; ++i) {
    const auto slot = [i](const ShardSnapshot& old) { return old.store.updater.slots[i]; };
    updater.slots.emplace_back();
    ASSIGN_OR_RETURN(updater.slots.back(), Join(cut, absl::StrCat("slot_", i), slot));
  }
  const auto average = [](const ShardSnapshot& old) { return old.store.updater.average; };
  ASSIGN_OR_RETURN(updater.average, Join(cut, "average", average));
  const Version version = state.store.version;
  const auto last = [version](const ShardSnapshot& old) {
    return Shifted(old.store.updater.last, static_cast<uint32_t>(version - old.store.version));
  };
  ASSIGN_OR_RETURN(updater.last, Join(cut, "last", last));
  const auto remainder = [](const ShardSnapshot& old) { return old.store.updater.remainder; };
  ASSIGN_OR_RETURN(updater.remainder, Join(cut, "remainder", remainder));
  if (!first.store.updater.selected_list.empty()) {
    updater.selected_list = EncodeIndexList({}, state.store.masters.size() / kValueBytes);
  }
  if (state.published.has_value()) {
    const auto published = [](const ShardSnapshot& old) { return old.published->values; };
    ASSIGN_OR_RETURN(state.published->values, Join(cut, "published", published));
  }
  const auto mean_squares = [](const ShardSnapshot& old) { return old.mean_squares; };
  ASSIGN_OR_RETURN(state.mean_squares, Join(cut, "mean_squares", mean_squares));
  return state;
}

// Returns the members of all servers. All have left.
std::vector<MemberRecord> MembersOf(std::span<const Checkpoint> servers) {
  std::map<WorkerId, MemberRecord> members;
  for (const Checkpoint& server : servers) {
    for (const MemberRecord& old : server.members) {
      MemberRecord& member = members[old.worker];
      member.worker = old.worker;
      member.assigned = std::max(member.assigned, old.assigned);
      member.incarnation = std::max(member.incarnation, old.incarnation);
      member.left = true;
    }
  }
  std::vector<MemberRecord> all;
  for (const auto& [worker, member] : members) all.push_back(member);
  return all;
}

// Returns the rule of the shard with the lowest number.
std::optional<Rule> RuleOfJob(std::span<const Checkpoint> servers) {
  const SavedShard* lowest = nullptr;
  for (const Checkpoint& server : servers) {
    if (server.shards.empty()) continue;
    if (lowest == nullptr || server.shards[0].shard < lowest->shard) lowest = &server.shards[0];
  }
  return lowest == nullptr ? std::nullopt : lowest->state.rule;
}

}  // namespace

absl::StatusOr<Partition> PartitionOfJoin(const JoinRequest& join) {
  absl::StatusOr<Partition> partition =
      Partition::Make(TensorsOf(join), join.shard_size(), join.servers());
  if (!partition.ok()) return absl::DataLossError(partition.status().message());
  return partition;
}

absl::Status SetPartition(JoinRequest& join, uint32_t server_count, uint64_t shard_size) {
  ASSIGN_OR_RETURN(const Partition old, PartitionOfJoin(join));
  ASSIGN_OR_RETURN(const Partition made, Partition::Make(old.tensors(), shard_size, server_count));
  join.set_servers(server_count);
  join.set_shard_size(shard_size);
  join.set_partition_hash(made.hash());
  if (join.has_config()) {
    join.mutable_config()->set_servers(server_count);
    join.mutable_config()->mutable_compression()->set_shard_size(shard_size);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Checkpoint>> Reshard(std::span<const Checkpoint> servers,
                                                uint32_t server_count, uint64_t shard_size) {
  if (servers.empty()) return absl::DataLossError("servers: no checkpoint");
  BeginRecord run = servers[0].run;
  ASSIGN_OR_RETURN(const Partition old, PartitionOfJoin(run.join));
  ASSIGN_OR_RETURN(const Pieces pieces, PiecesOf(servers, old));
  for (const Checkpoint& server : servers) {
    run.generation = std::max(run.generation, server.run.generation);
  }
  ++run.generation;
  RETURN_IF_ERROR(SetPartition(run.join, server_count, shard_size));
  ASSIGN_OR_RETURN(const Partition partition, PartitionOfJoin(run.join));
  ASSIGN_OR_RETURN(const Progress progress, ProgressOf(servers));
  const std::vector<MemberRecord> members = MembersOf(servers);
  const std::optional<Rule> rule = RuleOfJob(servers);
  std::vector<Checkpoint> made(server_count);
  made[0] = servers[0];  // server 0 alone has the state of the lead
  made[0].shards.clear();
  made[0].next = 1;
  for (uint32_t s = 0; s < server_count; ++s) {
    Checkpoint& checkpoint = made[s];
    checkpoint.server = ServerId{s};
    checkpoint.run = run;
    checkpoint.members = members;
    checkpoint.step = progress.frontier;
    checkpoint.test = servers[0].test;
    for (const ShardId shard : partition.ShardsOf(ServerId{s})) {
      ASSIGN_OR_RETURN(ShardSnapshot state,
                       NewState(Cut(pieces, partition.segments(shard)), progress));
      state.rule = rule;
      checkpoint.shards.push_back({.shard = shard, .state = std::move(state)});
    }
  }
  return made;
}

}  // namespace thinwire
