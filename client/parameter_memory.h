// ParameterMemory: where the values of a replica lie, and what brings them to what a server says.
// HostParameters has them in the host's memory, gpu/ on a GPU. One call handles a whole shard.
// Not thread-safe. The tensors' memory stays where it is.
#ifndef THINWIRE_CLIENT_PARAMETER_MEMORY_H_
#define THINWIRE_CLIENT_PARAMETER_MEMORY_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/frame.h"

namespace thinwire::client {

class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;

  virtual std::span<float> tensor(uint32_t tensor) = 0;

  // REQUIRES: one span per tensor, each of its length, in the host's memory.
  virtual absl::Status Fill(std::span<const std::span<const float>> values) = 0;
  // An fp32 payload of what SHARD was filled with. REQUIRES: nothing was applied to it yet.
  virtual ByteChain SeedPayload(ShardId shard) const = 0;

  // Brings a shard to what ENTRY says. Returns the hash of the new values, where one came with
  // ENTRY, else 0. REQUIRES: its payload was checked.
  virtual absl::StatusOr<uint64_t> Apply(const ParametersEntry& entry) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARAMETER_MEMORY_H_
