// Replica: the parameters as this worker holds them, and the version of each shard. Their values
// are a ParameterMemory's.
//
//   full      all of a shard's values
//   add       is added to them, and only to those of the version it names as its base
//   move      the same, but moves each value that changed by so many floats
//   (common/codec/delta/ulp_delta.h)
//
// A server that publishes deltas says now and then what the values hash to. A replica that is found
// to differ is held no longer, so that it is read anew and not trained on.
#ifndef THINWIRE_CLIENT_REPLICA_H_
#define THINWIRE_CLIENT_REPLICA_H_

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/parameter_memory.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe. The tensors' memory stays where it is.
class Replica {
 public:
  enum class Merged {
    kDone,
    kNeedsFull,  // a delta to a version that is not held: nothing was changed
    kDiffers,    // not what the server has: nothing of the shard is held any more
  };

  // Zeros in the host's memory, in MEMORY. PARTITION and MEMORY outlive the replica.
  explicit Replica(const Partition& partition,
                   std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  Replica(const Partition& partition, std::unique_ptr<ParameterMemory> memory);

  std::span<float> tensor(uint32_t tensor) { return memory_->tensor(tensor); }

  // REQUIRES: one span per tensor, each of its length. Errors: the memory's.
  absl::Status Fill(std::span<const std::span<const float>> values) {
    return memory_->Fill(values);
  }

  // An fp32 payload of what SHARD was filled with. REQUIRES: nothing was merged into it yet.
  ByteChain SeedPayload(ShardId shard) const { return memory_->SeedPayload(shard); }

  // 0 until parameters came.
  Version held_version(ShardId shard) const { return shards_[shard.value].version; }

  // Whether parameters came, and were not forgotten since.
  bool holds(ShardId shard) const { return shards_[shard.value].filled; }

  // Errors: InvalidArgument "shard 3: fp32 payload of ..."; DataLoss if full values differ from
  // what the server says they are; the memory's.
  absl::StatusOr<Merged> Merge(const ParametersEntry& entry);

  // Holds nothing of SHARD from now on, so that it is answered in full.
  void Forget(ShardId shard) { shards_[shard.value] = {}; }

 private:
  struct Held {
    Version version;
    bool filled = false;
  };

  const Partition& partition_;
  const std::unique_ptr<ParameterMemory> memory_;
  std::vector<Held> shards_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_H_
