// HostParameters: the ParameterMemory in the host's memory. Payloads are decoded directly into the
// tensors.
#ifndef THINWIRE_CLIENT_REPLICA_HOST_PARAMETERS_H_
#define THINWIRE_CLIENT_REPLICA_HOST_PARAMETERS_H_

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/replica/parameter_memory.h"
#include "common/memory/float_array.h"
#include "common/model/partition.h"

namespace thinwire::client {

// Not thread-safe.
class HostParameters final : public ParameterMemory {
 public:
  // Allocates the tensors from MEMORY and sets all values to 0. PARTITION and MEMORY must outlive
  // this object.
  explicit HostParameters(const Partition& partition,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  std::span<float> tensor(uint32_t tensor) override { return tensors_[tensor]; }
  absl::Status Fill(std::span<const std::span<const float>> values) override;
  ByteChain SeedPayload(ShardId shard) const override;
  absl::StatusOr<uint64_t> Apply(const ParameterChange& change) override;

 private:
  void DecodeWhole(const CheckedPayload& payload, std::span<float> values);

  const Partition& partition_;
  const bool past_cache_;  // true: stores of whole shards bypass the CPU's cache
  std::vector<FloatArray> memory_;
  std::vector<std::span<float>> tensors_;
  std::vector<float> scratch_;
};

// Returns the values of SEGMENTS in TENSORS, encoded as an fp32 payload.
ByteChain Fp32Payload(std::span<const Segment> segments,
                      std::span<const std::span<const float>> tensors);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_HOST_PARAMETERS_H_
