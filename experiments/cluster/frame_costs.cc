#include "experiments/cluster/frame_costs.h"

#include "experiments/cluster/codec_costs.h"
#include "proto/frame.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::lab {

sim::FrameCosts FrameCostsOf(const RunSpec& spec, const Partition& partition,
                             std::map<ShardId, Version>& encoded) {
  if (spec.machines.codec_cost().empty()) return {};
  const CodecCosts costs(spec.machines);
  const auto pushes = [&partition, costs](const WorkerFrame& frame, auto cost) {
    absl::Duration sum;
    for (const PushEntry& push : frame.pushes) {
      sum += (costs.*cost)(push.payload, partition.value_count(push.shard));
    }
    return sum;
  };
  using Cost = absl::Duration (CodecCosts::*)(const ByteChain&, size_t) const;
  constexpr Cost kEncode = &CodecCosts::Encode;
  constexpr Cost kDecode = &CodecCosts::Decode;
  sim::FrameCosts times;
  times.worker_sends = [pushes](const WorkerFrame& frame) { return pushes(frame, kEncode); };
  times.server_receives = [pushes](const WorkerFrame& frame) { return pushes(frame, kDecode); };
  times.server_sends = [&partition, &encoded, costs,
                        publish = spec.job.publish](const ServerFrame& frame) {
    absl::Duration sum;
    for (const ParametersEntry& entry : frame.parameters) {
      const auto [newest, added] = encoded.emplace(entry.shard, entry.version);
      if (!added && entry.version <= newest->second) continue;
      newest->second = entry.version;
      const size_t value_count = partition.value_count(entry.shard);
      if (!publish.has_value()) {
        sum += costs.Encode(entry.payload, value_count);
      } else if (publish->codec.has_value()) {
        sum += costs.Encode(publish->codec->id, value_count);
      }
    }
    return sum;
  };
  times.worker_receives = [&partition, costs](const ServerFrame& frame) {
    absl::Duration sum;
    for (const ParametersEntry& entry : frame.parameters) {
      if (entry.kind == Parameters::MOVE) continue;  // an exact delta has no codec
      sum += costs.Decode(entry.payload, partition.value_count(entry.shard));
    }
    return sum;
  };
  return times;
}

}  // namespace thinwire::lab
