// Replica: the parameters as this worker holds them, and the version of each shard. Answers are
// decoded straight into the tensors' memory.
//
//   full     replaces a shard's values
//   delta    adds to them, and only to those of the version it names as its base
#ifndef THINWIRE_CLIENT_REPLICA_H_
#define THINWIRE_CLIENT_REPLICA_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  };

  // Zeros. PARTITION outlives the replica.
  explicit Replica(const Partition& partition);

  std::span<float> tensor(uint32_t tensor) { return tensors_[tensor]; }

  // REQUIRES: one span per tensor, each of its length.
  void Fill(std::span<const std::span<const float>> values);

  // An fp32 payload of a shard's values.
  ByteChain SeedPayload(ShardId shard) const;

  // 0 until parameters came.
  Version held_version(ShardId shard) const { return shards_[shard.value].version; }

  // Errors: InvalidArgument "shard 3: fp32 payload of ...".
  absl::StatusOr<Merged> Merge(const ParametersEntry& entry);

  // Holds nothing of SHARD from now on, so that it is answered in full.
  void Forget(ShardId shard) { shards_[shard.value] = {}; }

 private:
  struct Held {
    Version version;
    bool filled = false;
  };

  void Decode(const ParametersEntry& entry, std::span<float> values);

  const Partition& partition_;
  std::vector<std::vector<float>> memory_;
  std::vector<std::span<float>> tensors_;
  std::vector<Held> shards_;
  std::vector<float> scratch_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPLICA_H_
