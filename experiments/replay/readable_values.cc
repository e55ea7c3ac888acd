#include "experiments/replay/readable_values.h"

#include "common/codec/payload.h"

namespace thinwire::lab {

Version ReadableVersion(const Shard& shard, const JobSpec& job) {
  return job.publish.has_value() ? shard.log()->newest() : shard.version();
}

std::vector<float> ReadableValues(Shard& shard, const JobSpec& job, size_t value_count) {
  if (job.publish.has_value()) return {shard.published().begin(), shard.published().end()};
  std::vector<float> values(value_count);
  DecodePayload(EncodedPayload(shard.Encoded(job.pull_codec), value_count), values);
  return values;
}

uint64_t ReadBytes(Shard& shard, const JobSpec& job, std::optional<Version> held) {
  if (!job.publish.has_value()) return shard.Encoded(job.pull_codec).size();
  uint64_t bytes = 0;
  for (const auto& delta : shard.Deltas(held)) bytes += delta->payload.size();
  return bytes;
}

}  // namespace thinwire::lab
