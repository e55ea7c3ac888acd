#include "client/replica/replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replica/host_parameters.h"
#include "common/codec/codec.h"
#include "common/codec/moves.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {

Replica::Replica(const Partition& partition, std::pmr::memory_resource* memory)
    : Replica(partition, std::make_unique<HostParameters>(partition, memory)) {}

Replica::Replica(const Partition& partition, std::unique_ptr<ParameterMemory> memory)
    : partition_(partition), memory_(std::move(memory)), shards_(partition.shard_count()) {}

absl::StatusOr<Replica::Merged> Replica::Merge(const ParametersEntry& entry) {
  Held& held = shards_[entry.shard.value];
  const size_t count = partition_.value_count(entry.shard);
  if (!Parameters::Kind_IsValid(static_cast<int>(entry.kind))) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", entry.shard.value, ": unknown kind of parameters (expected 0 to ",
                     Parameters::Kind_MAX, ", got ", entry.kind, ")"));
  }
  const bool full = entry.kind == Parameters::FULL;
  if (!full) {
    if (!held.filled) return Merged::kNeedsFull;
    if (entry.version <= held.version) return Merged::kDone;
    if (held.version != entry.base_version) return Merged::kNeedsFull;
  }
  const absl::Status s = entry.kind == Parameters::MOVE ? CheckMoves(entry.payload, count)
                                                        : CheckPayload(entry.payload, count);
  if (!s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", entry.shard.value, ": ", s.message()));
  }
  const absl::StatusOr<uint64_t> hash = memory_->Apply(entry);
  if (!hash.ok()) return hash.status();
  if (*hash != entry.published_hash) {
    Forget(entry.shard);
    if (!full) return Merged::kDiffers;
    return absl::DataLossError(
        absl::StrCat("shard ", entry.shard.value, ": wrong hash of the full values of version ",
                     entry.version.value, " (expected ", absl::Hex(entry.published_hash), ", got ",
                     absl::Hex(*hash), ")"));
  }
  held = {.version = entry.version, .filled = true};
  return Merged::kDone;
}

}  // namespace thinwire::client
