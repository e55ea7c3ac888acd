// Partition: splits a model's tensors into shards and assigns the shards to servers.
//
// A partition is a pure function of the tensors, the shard size and the number of servers. Every
// process computes the partition and compares its hash with the other processes. A tensor of two or
// more dimensions (a matrix) is split into shards of its own, whose sizes differ by at most one
// value. All vectors and scalars share shards, in the tensors' order. Vectors therefore never share
// a shard with a matrix, and a job can give them a codec of their own. Tensors of different
// parameter groups share no shard, and a tensor with `apart` shares none with any other. A tensor
// with `whole` is in one shard, even if it is larger than the shard size; if it is larger than the
// largest shard, it is split into shards of its own.
//
//   tensors   w1[784,128]  b1[128]  w2[128,10]  b2[10]        shard size 65536, 2 servers
//   shards    0: w2  1: b1 b2  2: w1[50176..100352)  3: w1[0..50176)
//
// A shard's number is its position in the push order, which all workers share: the shards of the
// model's last tensors come first, because the backward pass completes them first. The forward pass
// reads parameters in the opposite order. If workers pushed in different orders, no shard would be
// complete before the middle of a step.
//
// Shards are assigned to servers in descending order of size. Each shard is assigned to the server
// with the fewest values so far; among equal servers, to the one with the lowest number.
#ifndef THINWIRE_COMMON_MODEL_PARTITION_H_
#define THINWIRE_COMMON_MODEL_PARTITION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/matrix_run.h"

namespace thinwire {

inline constexpr uint64_t kLeastShardSize = 4096;
inline constexpr uint64_t kLargestShardSize = 262144;
// Without this limit, a small Join request could make a server allocate much memory.
inline constexpr uint64_t kMostShards = 65536;
inline constexpr uint32_t kMostServers = 4096;

struct TensorShape {
  std::string name;
  std::vector<int64_t> shape;  // empty: a scalar
  uint32_t group = 0;          // parameter group (common/spec/group_spec.h)
  bool whole = false;          // in one shard, unless it has more than kLargestShardSize values
  bool apart = false;          // shares no shard with another tensor

  uint64_t value_count() const;
  bool operator==(const TensorShape&) const = default;
};

// A run of consecutive values of one tensor, in row-major order.
struct Segment {
  uint32_t tensor = 0;
  uint64_t offset = 0;
  uint64_t count = 0;

  bool operator==(const Segment&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Segment& s);
};

// Immutable. Thread-safe.
class Partition {
 public:
  // Returns the partition of TENSORS. SHARD_SIZE is the largest number of values of a shard; 0
  // means 1/8 of the values per server, clamped to kLeastShardSize and kLargestShardSize. Errors:
  // InvalidArgument if there is no tensor, a name is empty or repeated, a dimension is not
  // positive, the model has more than 2^40 values, SHARD_SIZE exceeds kLargestShardSize, there could
  // be more than kMostShards shards, or SERVER_COUNT is not 1 to kMostServers.
  static absl::StatusOr<Partition> Make(std::vector<TensorShape> tensors, uint64_t shard_size,
                                        uint32_t server_count);

  // Returns the partition of some tensors alone, which one of the members of a worker owns
  // (docs/model_parallel.md): their shards, on the same servers and in the same order, numbered from
  // 0. TENSORS: positions in tensors(), ascending. REQUIRES: all tensors are `apart`; TENSORS is not
  // empty.
  Partition Of(std::span<const uint32_t> tensors) const;
  // Returns whether Of() has made this partition, and the partition of the whole model.
  bool is_part() const { return whole_ != nullptr; }
  const Partition& whole() const { return is_part() ? *whole_ : *this; }
  // Convert between the number of a shard here and its number in whole(), which messages contain.
  // local() returns nullopt for a shard that is not here. global() REQUIRES: shard < shard_count().
  ShardId global(ShardId shard) const { return is_part() ? ShardId{numbers_[shard.value]} : shard; }
  std::optional<ShardId> local(ShardId global) const;

  const std::vector<TensorShape>& tensors() const { return tensors_; }
  uint64_t value_count() const { return value_count_; }
  uint64_t shard_size() const { return shard_size_; }
  uint32_t server_count() const { return server_count_; }

  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  // segments(), value_count() and server() REQUIRE: shard < shard_count().
  const std::vector<Segment>& segments(ShardId shard) const {
    return shards_[shard.value].segments;
  }
  uint64_t value_count(ShardId shard) const { return shards_[shard.value].value_count; }
  ServerId server(ShardId shard) const { return shards_[shard.value].server; }

  // Returns whether a shard consists of vectors and scalars (biases, scales of normalization
  // layers). Such values are few and each affects accuracy, so gTop-k selection and sparse codecs
  // are not applied to these shards (Lin et al. 2018). REQUIRES: shard < shard_count().
  bool HoldsVectors(ShardId shard) const;

  // Returns whether a shard has a part of a tensor with `whole`, which is then all that it has.
  // REQUIRES: shard < shard_count().
  bool SharesTensor(ShardId shard) const;
  // Returns the first tensor with `whole` that is in several shards, or nullopt if there is none.
  std::optional<uint32_t> SharedTensor() const;

  // Returns the position of a shard's values in their tensor, viewed as a matrix: the rows are the
  // tensor's first dimension, and the columns are all others (a convolution of the shape [out, in,
  // h, w] has in * h * w columns). The result has 0 columns if the shard consists of vectors and
  // scalars. REQUIRES: shard < shard_count().
  MatrixRun MatrixRunOf(ShardId shard) const;

  // Returns the parameter group of a shard's tensors. REQUIRES: shard < shard_count().
  uint32_t group(ShardId shard) const { return tensors_[segments(shard)[0].tensor].group; }

  // Returns the shards of one server in push order. The result may be empty.
  std::vector<ShardId> ShardsOf(ServerId server) const;
  // Returns the shards that contain values of a tensor, in push order.
  std::vector<ShardId> ShardsOfTensor(uint32_t tensor) const;

  // Returns a 64-bit FNV-1a hash of the tensors, the shard size in effect and the server count.
  uint64_t hash() const { return hash_; }

  bool operator==(const Partition& other) const { return hash_ == other.hash_; }

 private:
  struct Shard {
    std::vector<Segment> segments;
    uint64_t value_count = 0;
    ServerId server;
  };

  Partition() = default;
  void AssignServers();

  std::vector<TensorShape> tensors_;
  uint64_t value_count_ = 0;
  uint64_t shard_size_ = 0;
  uint32_t server_count_ = 0;
  std::vector<Shard> shards_;
  std::shared_ptr<const Partition> whole_;  // null: this one
  std::vector<uint32_t> numbers_;           // of a part, by shard: the global number, ascending
  uint64_t hash_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MODEL_PARTITION_H_
