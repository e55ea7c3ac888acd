// Replica: this worker's copy of the parameters, and the version of each shard. A ParameterMemory
// contains the values. A server's message contains entries, each for one shard. An entry has one of
// three kinds:
//
//   FULL   sets all values of a shard
//   ADD    adds to the shard's values; applies only to the base version stated in the entry
//   MOVE   an ulp delta (docs/deltas.md); applies only to the base version, like ADD
//
// A server that publishes deltas sometimes sends the hash of the resulting values. If the replica's
// values of a shard have another hash, the replica marks the shard as missing. The client then
// reads the shard in full before training uses it.
#ifndef THINWIRE_CLIENT_REPLICA_REPLICA_H_
#define THINWIRE_CLIENT_REPLICA_REPLICA_H_

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/replica/parameter_memory.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/model/partition.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe. The tensors' addresses never change.
class Replica {
 public:
  enum class Merged {
    kDone,
    kNeedsFull,  // the delta's base version is not the replica's version; nothing was changed
    kDiffers,    // the hash differs from the server's; the replica has forgotten the shard
  };

  // Makes a replica in the host's memory, allocated from MEMORY, with all values 0. PARTITION and
  // MEMORY must outlive the replica.
  explicit Replica(const Partition& partition,
                   std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  Replica(const Partition& partition, std::unique_ptr<ParameterMemory> memory);

  std::span<float> tensor(uint32_t tensor) { return memory_->tensor(tensor); }

  // Sets all parameters to VALUES and forgets the versions of all shards. REQUIRES: VALUES has one
  // span per tensor, of the tensor's length. Errors: errors of the ParameterMemory.
  absl::Status Fill(std::span<const std::span<const float>> values) {
    shards_.assign(shards_.size(), Held());
    return memory_->Fill(values);
  }

  // Returns an fp32 payload with the initial values of SHARD, which Fill has set. REQUIRES: Merge
  // has not changed SHARD.
  ByteChain SeedPayload(ShardId shard) const { return memory_->SeedPayload(shard); }

  // Returns the version of SHARD's values; 0 before the first parameters arrive.
  Version held_version(ShardId shard) const { return shards_[shard.value].version; }

  // Returns true if parameters of SHARD have arrived and the replica has not forgotten SHARD since.
  bool holds(ShardId shard) const { return shards_[shard.value].filled; }

  // Checks ENTRY and applies it. Errors: InvalidArgument "shard 3: ..." for a malformed entry;
  // DataLoss if the values of a FULL entry do not have the hash in the entry; errors of the
  // ParameterMemory.
  absl::StatusOr<Merged> Merge(const ParametersEntry& entry);

  // Forgets the version of SHARD, so that the server sends the whole shard at the next read.
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

#endif  // THINWIRE_CLIENT_REPLICA_REPLICA_H_
