#include "client/replica/replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replica/host_parameters.h"
#include "common/base/status_macros.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/codec/payload.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {
namespace {

// Checks the payload of ENTRY, whose shard has COUNT values, and returns its content. Errors:
// InvalidArgument.
absl::StatusOr<ParameterChange> CheckedChange(const ParametersEntry& entry, size_t count) {
  const bool wants_hash = entry.published_hash != 0;
  if (entry.kind == Parameters::MOVE) {
    ASSIGN_OR_RETURN(UlpDelta delta, UlpDelta::Check(entry.payload, count));
    return ParameterChange{
        .shard = entry.shard, .values = std::move(delta), .wants_hash = wants_hash};
  }
  ASSIGN_OR_RETURN(CheckedPayload payload, CheckPayload(entry.payload, count));
  return ParameterChange{.shard = entry.shard,
                         .values = std::move(payload),
                         .adds = entry.kind == Parameters::ADD,
                         .wants_hash = wants_hash};
}

}  // namespace

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
  const absl::StatusOr<ParameterChange> change = CheckedChange(entry, count);
  if (!change.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", entry.shard.value, ": ", change.status().message()));
  }
  ASSIGN_OR_RETURN(const uint64_t hash, memory_->Apply(*change));
  if (hash != entry.published_hash) {
    Forget(entry.shard);
    if (!full) return Merged::kDiffers;
    return absl::DataLossError(
        absl::StrCat("shard ", entry.shard.value, ": wrong hash of the full values of version ",
                     entry.version.value, " (expected ", absl::Hex(entry.published_hash), ", got ",
                     absl::Hex(hash), ")"));
  }
  held = {.version = entry.version, .filled = true};
  return Merged::kDone;
}

}  // namespace thinwire::client
