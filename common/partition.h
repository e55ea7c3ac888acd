// Partition: how a model's tensors become shards, and where each shard lives.
//
// A pure function of (tensor names and shapes in order, shard size, server count), so every process
// computes the same one and a hash proves it. A tensor of two or more dimensions is cut into shards
// of its own, equal to within one value; all vectors and scalars, in their order, share shards of
// their own. So a layer can have its codec, and vectors can go dense.
//
//   tensors   w1[784,128]  b1[128]  w2[128,10]  b2[10]        shard size 65536, 2 servers
//   shards    2: w1[0..50176)  1: w1[50176..100352) ... in the order in which backward finishes
//   them
//
// A shard's number is its place in the push order that all workers share: shards whose first tensor
// is last in the model come first, because backward finishes there. Reads are wanted the other way
// round. Two workers that pushed in different orders would close no shard before half-time.
//
// Shards are dealt largest first to the server that holds the fewest values, ties to the lower
// number.
#ifndef THINWIRE_COMMON_PARTITION_H_
#define THINWIRE_COMMON_PARTITION_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace thinwire {

inline constexpr uint64_t kLeastShardSize = 4096;
inline constexpr uint64_t kLargestShardSize = 262144;
inline constexpr uint64_t kMostShards = uint64_t{1} << 22;
inline constexpr uint32_t kMostServers = 4096;

struct TensorShape {
  std::string name;
  std::vector<int64_t> shape;  // empty: a scalar

  uint64_t value_count() const;
  bool operator==(const TensorShape&) const = default;
};

// A run of a tensor's values, row-major.
struct Segment {
  uint32_t tensor = 0;
  uint64_t offset = 0;
  uint64_t count = 0;

  bool operator==(const Segment&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Segment& s);
};

// Immutable.
class Partition {
 public:
  // SHARD_SIZE 0 means total / (8 per server), within the least and the largest. Errors:
  // InvalidArgument if there is no tensor, a name is empty or stands twice, a dimension is not
  // positive, the values exceed 2^40, the shard size exceeds the largest, there would be more than
  // kMostShards shards, or not 1 to kMostServers servers.
  static absl::StatusOr<Partition> Make(std::vector<TensorShape> tensors, uint64_t shard_size,
                                        uint32_t server_count);

  const std::vector<TensorShape>& tensors() const { return tensors_; }
  uint64_t value_count() const { return value_count_; }
  uint64_t shard_size() const { return shard_size_; }
  uint32_t server_count() const { return server_count_; }

  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  // REQUIRES: shard < shard_count().
  const std::vector<Segment>& segments(ShardId shard) const {
    return shards_[shard.value].segments;
  }
  uint64_t value_count(ShardId shard) const { return shards_[shard.value].value_count; }
  ServerId server(ShardId shard) const { return shards_[shard.value].server; }

  // The shards of one server, in push order; a server may hold none.
  std::vector<ShardId> ShardsOf(ServerId server) const;
  // The shards that hold values of a tensor, in push order.
  std::vector<ShardId> ShardsOfTensor(uint32_t tensor) const;

  // FNV-1a, 64 bits, of the tensors, the shard size in force and the server count.
  uint64_t hash() const { return hash_; }

  bool operator==(const Partition& other) const { return hash_ == other.hash_; }

 private:
  struct Shard {
    std::vector<Segment> segments;
    uint64_t value_count = 0;
    ServerId server;
  };

  Partition() = default;
  void Deal();  // shards to servers

  std::vector<TensorShape> tensors_;
  uint64_t value_count_ = 0;
  uint64_t shard_size_ = 0;
  uint32_t server_count_ = 0;
  std::vector<Shard> shards_;
  uint64_t hash_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_PARTITION_H_
