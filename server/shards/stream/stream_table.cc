#include "server/shards/stream/stream_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

void StreamTable::Admit(WorkerId worker, Incarnation incarnation, uint32_t member,
                        std::span<const ShardId> owned) {
  absl::MutexLock lock(&mu_);
  Row& row = rows_[worker.value];
  if (incarnation > row.newest) row.owners.clear();
  row.newest = std::max(row.newest, incarnation);
  for (const ShardId shard : owned) row.owners[shard] = member;
}

absl::Status StreamTable::Register(WorkerId worker, Incarnation incarnation,
                                   const std::shared_ptr<ServerStream>& stream, uint32_t member) {
  std::shared_ptr<ServerStream> replaced;
  {
    absl::MutexLock lock(&mu_);
    if (worker.value >= rows_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker: not a worker of this job (expected below ", rows_.size(), ", got ",
                       worker.value, ")"));
    }
    if (member >= member_count_) {
      return absl::InvalidArgumentError(
          absl::StrCat("member: not a member of a worker (expected below ", member_count_, ", got ",
                       member, ")"));
    }
    Row& row = rows_[worker.value];
    if (incarnation.value == 0 || incarnation > row.newest) {
      return absl::FailedPreconditionError(absl::StrCat("worker ", worker.value, ": incarnation ",
                                                        incarnation.value, " has not joined here"));
    }
    if (incarnation < row.newest) return absl::OkStatus();
    Process& process = row.processes[member];
    replaced = std::exchange(process.stream, stream);
    // If the replaced stream belongs to an older incarnation, it stays open, so that the older
    // incarnation receives the verdict kFenced.
    if (process.registered != incarnation || replaced == stream) replaced = nullptr;
    process.registered = incarnation;
  }
  if (replaced != nullptr) {
    replaced->End(
        absl::AbortedError(absl::StrCat("worker ", worker.value, " opened another stream")));
  }
  return absl::OkStatus();
}

void StreamTable::Remove(const ServerStream* stream) {
  std::shared_ptr<ServerStream> last;  // keeps the stream alive until the lock is released
  {
    absl::MutexLock lock(&mu_);
    for (Row& row : rows_) {
      for (Process& process : row.processes) {
        if (process.stream.get() == stream) last = std::exchange(process.stream, nullptr);
      }
    }
  }
  if (last != nullptr && ended_ != nullptr) ended_();
}

std::optional<uint32_t> StreamTable::OwnerOf(const Row& row, ShardId shard) const {
  if (member_count_ == 1) return 0;
  const auto owner = row.owners.find(shard);
  return owner == row.owners.end() ? std::nullopt : std::optional(owner->second);
}

std::shared_ptr<ServerStream> StreamTable::Find(WorkerId worker, Incarnation incarnation,
                                                ShardId shard) const {
  absl::MutexLock lock(&mu_);
  if (worker.value >= rows_.size()) return nullptr;
  const Row& row = rows_[worker.value];
  const std::optional<uint32_t> owner = OwnerOf(row, shard);
  if (!owner.has_value() || row.newest != incarnation) return nullptr;
  const Process& process = row.processes[*owner];
  return process.registered == incarnation ? process.stream : nullptr;
}

bool StreamTable::Owns(WorkerId worker, uint32_t member, ShardId shard) const {
  if (member_count_ == 1) return true;
  absl::MutexLock lock(&mu_);
  return worker.value < rows_.size() && OwnerOf(rows_[worker.value], shard) == member;
}

std::vector<std::shared_ptr<ServerStream>> StreamTable::All() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<ServerStream>> streams;
  for (const Row& row : rows_) {
    for (const Process& process : row.processes) {
      if (process.stream != nullptr) streams.push_back(process.stream);
    }
  }
  return streams;
}

}  // namespace thinwire
