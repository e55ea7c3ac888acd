// ParameterMemory: where the values of a replica lie, and what brings them to what a server says.
// HostParameters has them in the host's memory, gpu/ on a GPU. One call handles a whole shard.
// Not thread-safe. The tensors' memory stays where it is.
#ifndef THINWIRE_CLIENT_PARAMETER_MEMORY_H_
#define THINWIRE_CLIENT_PARAMETER_MEMORY_H_

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

// What a ParametersEntry changes, checked.
struct ParameterChange {
  ShardId shard;
  // The new values of the shard or, with `adds`, values to be added to it; or the ULP changes of
  // some values.
  std::variant<CheckedPayload, UlpDelta> values;
  bool adds = false;
  bool wants_hash = false;  // of the new values
};

class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;

  virtual std::span<float> tensor(uint32_t tensor) = 0;

  // REQUIRES: one span per tensor, each of its length, in the host's memory.
  virtual absl::Status Fill(std::span<const std::span<const float>> values) = 0;
  // An fp32 payload of what SHARD was filled with. REQUIRES: nothing was applied to it yet.
  virtual ByteChain SeedPayload(ShardId shard) const = 0;

  // Applies CHANGE to its shard. Returns the hash of the new values if CHANGE wants it, else 0.
  // REQUIRES: CHANGE has the shard's number of values.
  virtual absl::StatusOr<uint64_t> Apply(const ParameterChange& change) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARAMETER_MEMORY_H_
