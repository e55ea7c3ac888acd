#include "common/model/partition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

constexpr uint64_t kMostValues = uint64_t{1} << 40;

// A 64-bit FNV-1a hash of numbers and strings. Numbers are hashed as little-endian bytes; a string
// is hashed after its length.
class Fnv1a {
 public:
  void Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<uint8_t>(number >> shift));
  }
  void Add(std::string_view text) {
    Add(text.size());
    for (char c : text) AddByte(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return value_; }

 private:
  void AddByte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }

  uint64_t value_ = 0xCBF29CE484222325u;
};

uint64_t Hash(std::span<const TensorShape> tensors, uint64_t shard_size, uint32_t server_count) {
  Fnv1a hash;
  hash.Add(tensors.size());
  for (const TensorShape& tensor : tensors) {
    hash.Add(tensor.name);
    hash.Add(tensor.shape.size());
    for (int64_t dimension : tensor.shape) hash.Add(static_cast<uint64_t>(dimension));
  }
  // A model without groups, whole tensors and tensors apart keeps the hash of earlier versions, which
  // checkpoints contain.
  const auto is_plain = [](const TensorShape& t) { return t.group == 0 && !t.whole && !t.apart; };
  if (!std::ranges::all_of(tensors, is_plain)) {
    for (const TensorShape& tensor : tensors) {
      hash.Add(tensor.group);
      hash.Add((tensor.whole ? 1 : 0) + (tensor.apart ? 2 : 0));
    }
  }
  hash.Add(shard_size);
  hash.Add(server_count);
  return hash.value();
}

// Returns the name and the shape of TENSOR for a message.
std::string Place(const TensorShape& tensor) {
  return absl::StrCat("tensor ", Quoted(tensor.name), " of shape [",
                      Shortened(absl::StrJoin(tensor.shape, ",")), "]");
}

// Returns the number of values of TENSOR. Errors: InvalidArgument for a dimension that is not
// positive and for more than kMostValues values.
absl::StatusOr<uint64_t> CheckedCount(const TensorShape& tensor) {
  uint64_t count = 1;
  for (int64_t dimension : tensor.shape) {
    if (dimension <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(tensor), ": dimension not positive (expected 1 or more)"));
    }
    if (static_cast<uint64_t>(dimension) > kMostValues / count) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(tensor), ": too many values (expected at most ", kMostValues, ")"));
    }
    count *= static_cast<uint64_t>(dimension);
  }
  return count;
}

// Returns the number of values of all tensors. Errors: InvalidArgument if Partition::Make must
// refuse the tensors.
absl::StatusOr<uint64_t> CheckedTotal(std::span<const TensorShape> tensors) {
  if (tensors.empty())
    return absl::InvalidArgumentError("model: no tensors (expected at least one)");
  uint64_t total = 0;
  absl::flat_hash_set<std::string_view> names;
  for (const TensorShape& tensor : tensors) {
    if (tensor.name.empty()) return absl::InvalidArgumentError("model: a tensor has no name");
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: two tensors are named ", Quoted(tensor.name)));
    }
    ASSIGN_OR_RETURN(const uint64_t count, CheckedCount(tensor));
    total += count;
    if (total > kMostValues) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: too many values (expected at most ", kMostValues, ")"));
    }
  }
  return total;
}

uint64_t DefaultShardSize(uint64_t total, uint32_t server_count) {
  return std::clamp(total / (uint64_t{8} * server_count), kLeastShardSize, kLargestShardSize);
}

bool IsMatrix(const TensorShape& tensor) { return tensor.shape.size() >= 2; }

// Returns whether TENSOR, which should be in one shard, is too large for one.
bool IsShared(const TensorShape& tensor) {
  return tensor.whole && tensor.value_count() > kLargestShardSize;
}

// Returns whether TENSOR is split into shards of its own.
bool IsSplitAlone(const TensorShape& tensor) {
  return IsShared(tensor) || (!tensor.whole && (IsMatrix(tensor) || tensor.apart));
}

// Returns the number of shards that Split() makes of VALUE_COUNT values.
uint64_t PieceCount(uint64_t value_count, uint64_t shard_size) {
  return (value_count + shard_size - 1) / shard_size;
}

// Returns an upper bound of the number of shards that SplitAll() makes. The bound is exact for a
// model without groups and whole tensors.
uint64_t ShardCount(std::span<const TensorShape> tensors, uint64_t shard_size) {
  uint64_t shard_count = 0;
  std::map<uint32_t, uint64_t> vector_values;  // by group
  for (const TensorShape& tensor : tensors) {
    if (IsSplitAlone(tensor)) {
      shard_count += PieceCount(tensor.value_count(), shard_size);
    } else if (tensor.whole) {
      ++shard_count;
    } else {
      vector_values[tensor.group] += tensor.value_count();
    }
  }
  for (const auto& [group, count] : vector_values) shard_count += PieceCount(count, shard_size);
  return shard_count;
}

// Splits the consecutive segments in RUN into the smallest number of shards of at most SHARD_SIZE
// values. The sizes of the shards differ by at most one value.
std::vector<std::vector<Segment>> Split(std::span<const Segment> run, uint64_t shard_size) {
  uint64_t total = 0;
  for (const Segment& segment : run) total += segment.count;
  const uint64_t pieces = PieceCount(total, shard_size);
  std::vector<std::vector<Segment>> shards(pieces);
  size_t at = 0;
  uint64_t used = 0;  // number of values of segment run[at] that are already in a shard
  for (uint64_t i = 0; i < pieces; ++i) {
    uint64_t wanted = total / pieces + (i < total % pieces ? 1 : 0);
    while (wanted > 0) {
      const uint64_t part = std::min(wanted, run[at].count - used);
      shards[i].push_back({run[at].tensor, run[at].offset + used, part});
      wanted -= part;
      used += part;
      if (used == run[at].count) {
        ++at;
        used = 0;
      }
    }
  }
  return shards;
}

// Packs the whole tensors in RUN into shards of at most SHARD_SIZE values, in order. A larger
// tensor has a shard of its own.
std::vector<std::vector<Segment>> Pack(std::span<const Segment> run, uint64_t shard_size) {
  std::vector<std::vector<Segment>> shards;
  uint64_t used = 0;
  for (const Segment& tensor : run) {
    if (shards.empty() || used + tensor.count > shard_size) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(tensor);
    used += tensor.count;
  }
  return shards;
}

std::vector<std::vector<Segment>> SplitAll(std::span<const TensorShape> tensors,
                                           uint64_t shard_size) {
  std::vector<std::vector<Segment>> shards;
  const auto add = [&shards, shard_size](std::span<const Segment> run, bool whole) {
    auto added = whole ? Pack(run, shard_size) : Split(run, shard_size);
    for (auto& shard : added) shards.push_back(std::move(shard));
  };
  std::map<std::pair<uint32_t, bool>, std::vector<Segment>> vectors;  // by group and `whole`
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    const Segment all{t, 0, tensors[t].value_count()};
    if (IsSplitAlone(tensors[t])) {
      add(std::span(&all, 1), false);
    } else if (IsMatrix(tensors[t]) || tensors[t].apart) {
      add(std::span(&all, 1), true);
    } else {
      vectors[{tensors[t].group, tensors[t].whole}].push_back(all);
    }
  }
  for (const auto& [key, run] : vectors) add(run, key.second);
  // Sorts the shards by push order. The backward pass runs from the last tensor to the first. A
  // shard is complete when the gradient of its first tensor has been computed.
  std::ranges::stable_sort(shards, [](const auto& a, const auto& b) {
    if (a.front().tensor != b.front().tensor) return a.front().tensor > b.front().tensor;
    return a.front().offset > b.front().offset;
  });
  return shards;
}

}  // namespace

uint64_t TensorShape::value_count() const {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1},
                         [](uint64_t n, int64_t d) { return n * static_cast<uint64_t>(d); });
}

std::ostream& operator<<(std::ostream& out, const Segment& s) {
  return out << "tensor " << s.tensor << "[" << s.offset << ".." << s.offset + s.count << ")";
}

absl::StatusOr<Partition> Partition::Make(std::vector<TensorShape> tensors, uint64_t shard_size,
                                          uint32_t server_count) {
  ASSIGN_OR_RETURN(const uint64_t total, CheckedTotal(tensors));
  if (server_count == 0 || server_count > kMostServers) {
    return absl::InvalidArgumentError(absl::StrCat("servers: out of range (expected 1 to ",
                                                   kMostServers, ", got ", server_count, ")"));
  }
  if (shard_size > kLargestShardSize) {
    return absl::InvalidArgumentError(absl::StrCat("shard_size: too large (expected at most ",
                                                   kLargestShardSize, " values, got ", shard_size,
                                                   ")"));
  }
  Partition partition;
  partition.value_count_ = total;
  partition.shard_size_ = shard_size == 0 ? DefaultShardSize(total, server_count) : shard_size;
  const uint64_t shard_count = ShardCount(tensors, partition.shard_size_);
  if (shard_count > kMostShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: too many shards (expected at most ", kMostShards, ", got ",
                     shard_count, " of at most ", partition.shard_size_, " values)"));
  }
  partition.server_count_ = server_count;
  partition.hash_ = Hash(tensors, partition.shard_size_, server_count);
  for (auto& segments : SplitAll(tensors, partition.shard_size_)) {
    Shard shard;
    for (const Segment& segment : segments) shard.value_count += segment.count;
    shard.segments = std::move(segments);
    partition.shards_.push_back(std::move(shard));
  }
  partition.tensors_ = std::move(tensors);
  partition.AssignServers();
  return partition;
}

Partition Partition::Of(std::span<const uint32_t> tensors) const {
  Partition part;
  part.whole_ = std::make_shared<const Partition>(*this);
  part.shard_size_ = shard_size_;
  part.server_count_ = server_count_;
  std::vector<uint32_t> places(tensors_.size(), std::numeric_limits<uint32_t>::max());
  Fnv1a hash;
  hash.Add(hash_);
  for (const uint32_t tensor : tensors) {
    hash.Add(tensor);
    places[tensor] = static_cast<uint32_t>(part.tensors_.size());
    part.tensors_.push_back(tensors_[tensor]);
    part.value_count_ += tensors_[tensor].value_count();
  }
  part.hash_ = hash.value();
  for (uint32_t s = 0; s < shard_count(); ++s) {
    const uint32_t place = places[shards_[s].segments.front().tensor];
    if (place == std::numeric_limits<uint32_t>::max()) continue;
    part.numbers_.push_back(s);
    for (Segment& segment : part.shards_.emplace_back(shards_[s]).segments) segment.tensor = place;
  }
  return part;
}

std::optional<ShardId> Partition::local(ShardId global) const {
  if (!is_part()) {
    return global.value < shard_count() ? std::optional(global) : std::nullopt;
  }
  const auto found = std::ranges::lower_bound(numbers_, global.value);
  if (found == numbers_.end() || *found != global.value) return std::nullopt;
  return ShardId{static_cast<uint32_t>(found - numbers_.begin())};
}

void Partition::AssignServers() {
  std::vector<Shard*> largest_first;
  for (Shard& shard : shards_) largest_first.push_back(&shard);
  std::ranges::stable_sort(largest_first, [](const Shard* a, const Shard* b) {
    return a->value_count > b->value_count;
  });
  // A heap of pairs (load, server). Its top is the server with the smallest load; among equal
  // loads, the server with the lowest number.
  std::vector<std::pair<uint64_t, uint32_t>> loads;
  for (uint32_t s = 0; s < server_count_; ++s) loads.emplace_back(0, s);
  for (Shard* shard : largest_first) {
    std::ranges::pop_heap(loads, std::ranges::greater{});
    shard->server = ServerId{loads.back().second};
    loads.back().first += shard->value_count;
    std::ranges::push_heap(loads, std::ranges::greater{});
  }
}

bool Partition::HoldsVectors(ShardId shard) const {
  return !IsMatrix(tensors_[segments(shard)[0].tensor]);
}

bool Partition::SharesTensor(ShardId shard) const {
  return IsShared(tensors_[segments(shard)[0].tensor]);
}

std::optional<uint32_t> Partition::SharedTensor() const {
  const auto found = std::ranges::find_if(tensors_, IsShared);
  if (found == tensors_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - tensors_.begin());
}

MatrixRun Partition::MatrixRunOf(ShardId shard) const {
  if (HoldsVectors(shard)) return {};
  const Segment& segment = segments(shard)[0];
  const TensorShape& tensor = tensors_[segment.tensor];
  const uint64_t columns = tensor.value_count() / static_cast<uint64_t>(tensor.shape[0]);
  return {.columns = columns, .first_column = segment.offset % columns};
}

std::vector<ShardId> Partition::ShardsOf(ServerId server) const {
  std::vector<ShardId> found;
  for (uint32_t s = 0; s < shard_count(); ++s) {
    if (shards_[s].server == server) found.push_back(ShardId{s});
  }
  return found;
}

std::vector<ShardId> Partition::ShardsOfTensor(uint32_t tensor) const {
  std::vector<ShardId> found;
  for (uint32_t s = 0; s < shard_count(); ++s) {
    const auto& segments = shards_[s].segments;
    if (std::ranges::any_of(segments, [tensor](const Segment& g) { return g.tensor == tensor; })) {
      found.push_back(ShardId{s});
    }
  }
  return found;
}

}  // namespace thinwire
