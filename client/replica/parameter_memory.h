// ParameterMemory: the memory that contains a replica's values, and the operations on these values.
// HostParameters uses the host's memory, and DeviceParameters (client/gpu) uses a GPU's memory.
// Each call handles a whole shard. The tensors' addresses never change. Not thread-safe.
#ifndef THINWIRE_CLIENT_REPLICA_PARAMETER_MEMORY_H_
#define THINWIRE_CLIENT_REPLICA_PARAMETER_MEMORY_H_

#include <cstdint>
#include <span>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/codec/payload.h"
#include "common/memory/byte_chain.h"

namespace thinwire::client {

// A change of one shard's parameters. Contains the data of a ParametersEntry (one shard's part of a
// server's message) after it was checked.
struct ParameterChange {
  ShardId shard;
  // A payload contains the shard's new values or, if `adds` is true, values to add to the shard's
  // values. A UlpDelta changes some of the shard's values.
  std::variant<CheckedPayload, UlpDelta> values;
  bool adds = false;
  bool wants_hash = false;  // true: Apply computes the hash of the new values
};

class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;

  virtual std::span<float> tensor(uint32_t tensor) = 0;

  // Sets all parameters to VALUES. REQUIRES: VALUES has one span per tensor, of the tensor's
  // length, in the host's memory. May be called again.
  virtual absl::Status Fill(std::span<const std::span<const float>> values) = 0;
  // Returns an fp32 payload with the initial values of SHARD, which Fill has set. REQUIRES: Apply
  // was not called for SHARD since Fill.
  virtual ByteChain SeedPayload(ShardId shard) const = 0;

  // Applies CHANGE to its shard. Returns the hash of the new values if CHANGE requests it, else 0.
  // REQUIRES: the payload or delta in CHANGE has as many values as the shard.
  virtual absl::StatusOr<uint64_t> Apply(const ParameterChange& change) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_PARAMETER_MEMORY_H_
