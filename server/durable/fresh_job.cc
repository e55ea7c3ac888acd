#include "server/durable/fresh_job.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/codec/payload.h"
#include "common/model/partition.h"
#include "common/text/quoted.h"
#include "server/core/event.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/shard.h"
#include "server/durable/reshard.h"

namespace thinwire {
namespace {

absl::Status CheckSizes(const Partition& partition,
                        std::span<const std::span<const float>> tensors) {
  if (tensors.size() != partition.tensors().size()) {
    return absl::InvalidArgumentError(absl::StrCat("model: wrong number of tensors (expected ",
                                                   partition.tensors().size(), ", got ",
                                                   tensors.size(), ")"));
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorShape& shape = partition.tensors()[t];
    if (tensors[t].size() == shape.value_count()) continue;
    return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(shape.name),
                                                   ": wrong size (expected ", shape.value_count(),
                                                   " values, got ", tensors[t].size(), ")"));
  }
  return absl::OkStatus();
}

// Returns the values of a shard in the order of its segments.
std::vector<float> ValuesOf(std::span<const Segment> segments,
                            std::span<const std::span<const float>> tensors) {
  std::vector<float> values;
  for (const Segment& segment : segments) {
    const auto part = tensors[segment.tensor].subspan(segment.offset, segment.count);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

ByteChain Fp32Payload(std::span<const float> values) {
  const std::unique_ptr<const Codec> codec = MakeCodec(CodecSpec()).value();
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(values.size()));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  return ByteChain(std::move(bytes));
}

}  // namespace

absl::StatusOr<std::vector<Checkpoint>> FreshJob(const JobSpec& spec, const BeginRecord& run,
                                                 std::span<const std::span<const float>> tensors) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionOfJoin(run.join));
  RETURN_IF_ERROR(CheckSizes(partition, tensors));
  ASSIGN_OR_RETURN(const std::vector<GroupUpdate> updates,
                   MakeGroupUpdates(spec.AllGroups(), spec.schedule));
  std::vector<Checkpoint> servers(partition.server_count());
  for (uint32_t s = 0; s < servers.size(); ++s) {
    servers[s].server = ServerId{s};
    servers[s].run = run;
    servers[s].step = Step{0};
    for (const ShardId shard : partition.ShardsOf(ServerId{s})) {
      ShardOptions options = {.value_count = partition.value_count(shard),
                              .rule = spec.rule,
                              .planned_examples = run.join.planned_examples(),
                              .sparse_updates = spec.sparse_updates,
                              .publish = spec.publish};
      // gTop-k does not select among the values of vectors.
      if (partition.HoldsVectors(shard)) options.sparse_updates.selection_density = std::nullopt;
      const uint32_t group = partition.group(shard);
      if (group >= updates.size()) {
        return absl::DataLossError(absl::StrCat("shard ", shard.value, ": no parameter group ",
                                                group, " (expected less than ", updates.size(),
                                                ")"));
      }
      Shard made(options, *updates[group].optimizer, updates[group].schedule);
      const std::vector<float> values = ValuesOf(partition.segments(shard), tensors);
      ASSIGN_OR_RETURN(CheckedPayload payload, CheckPayload(Fp32Payload(values), values.size()));
      made.Apply(SeedEvent{std::move(payload)});
      servers[s].shards.push_back({.shard = shard, .state = made.Save()});
    }
  }
  return servers;
}

}  // namespace thinwire
