// ParameterMemory: the memory that holds a replica's values, and the operations on it.
// HostParameters is in the host's memory, DeviceParameters (client/gpu) on a GPU. Each call handles
// a whole shard. The tensors' addresses never change. Not thread-safe.
#ifndef THINWIRE_CLIENT_REPLICA_PARAMETER_MEMORY_H_
#define THINWIRE_CLIENT_REPLICA_PARAMETER_MEMORY_H_

#include <cstdint>
#include <span>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/codec/payload.h"
#include "common/ids.h"

namespace thinwire::client {

// The checked content of a ParametersEntry.
struct ParameterChange {
  ShardId shard;
  // A payload holds the new values of the shard or, with `adds`, values to add to it. A UlpDelta
  // changes some of the values.
  std::variant<CheckedPayload, UlpDelta> values;
  bool adds = false;
  bool wants_hash = false;  // whether to compute the hash of the new values
};

class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;

  virtual std::span<float> tensor(uint32_t tensor) = 0;

  // Sets all values. REQUIRES: one span per tensor, each of the tensor's length, in the host's
  // memory.
  virtual absl::Status Fill(std::span<const std::span<const float>> values) = 0;
  // Returns the values of SHARD that Fill set, as an fp32 payload. REQUIRES: Apply was not called
  // for SHARD.
  virtual ByteChain SeedPayload(ShardId shard) const = 0;

  // Applies CHANGE to its shard. Returns the hash of the new values if CHANGE wants it, else 0.
  // REQUIRES: CHANGE has the shard's number of values.
  virtual absl::StatusOr<uint64_t> Apply(const ParameterChange& change) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_PARAMETER_MEMORY_H_
