#include "server/edge/convert.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/codec/payload.h"
#include "common/status_macros.h"
#include "server/core/read_form.h"

namespace thinwire {
namespace {

// A count of shards too large is found before a partition of them is made. Tensors too large for a
// count are left to Partition::Make.
absl::Status CheckShardCount(const JoinRequest& request) {
  double total = 0;
  for (const Tensor& tensor : request.tensors()) {
    double values = 1;
    for (int64_t dimension : tensor.shape()) values *= static_cast<double>(dimension);
    total += values;
  }
  const double share = total / 8 / std::max<uint32_t>(request.servers(), 1);
  const double size = request.shard_size() != 0
                          ? static_cast<double>(request.shard_size())
                          : std::clamp<double>(share, kLeastShardSize, kLargestShardSize);
  if (total / size + request.tensors_size() <= kMostJobShards) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a model of ", total, " values in ", request.tensors_size(),
                   " tensors and shards of ", size, ": want at most ", kMostJobShards, " shards"));
}

absl::Status Wrong(ShardId shard, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("shard ", shard.value, ": ", what));
}

// Turns a frame's entries into events, grouped by shard in the order of first mention.
class Grouping {
 public:
  Grouping(const Partition& partition, ServerId self, bool publishes, const WorkerFrame& frame)
      : partition_(partition),
        self_(self),
        publishes_(publishes),
        worker_(frame.worker),
        incarnation_(frame.incarnation),
        generation_(frame.generation) {}

  absl::Status Add(SeedEntry&& seed) {
    ASSIGN_OR_RETURN(CheckedPayload payload, PayloadOf(seed.shard, std::move(seed.payload)));
    const CodecId codec = PayloadCodec(payload);
    if (codec != CodecId::kFp32) {
      return Wrong(seed.shard,
                   absl::StrCat("want a seed in fp32, got ", std::string(CodecName(codec))));
    }
    if (!PayloadIsFinite(payload)) {
      return Wrong(seed.shard, "want a finite seed, got a NaN or an infinity");
    }
    EventsFor(seed.shard).push_back(SeedEvent{std::move(payload)});
    return absl::OkStatus();
  }

  absl::Status Add(PushEntry&& push) {
    CheckedPayload payload;
    if (push.examples == 0) {
      RETURN_IF_ERROR(CheckNoPayload(push));
    } else {
      ASSIGN_OR_RETURN(payload, PayloadOf(push.shard, std::move(push.payload)));
    }
    const absl::StatusOr<ReadForm> form = FormOf(push.shard, push.read_codec, push.held_version);
    if (!form.ok()) return form.status();
    EventsFor(push.shard)
        .push_back(PushEvent{worker_, incarnation_, generation_, push.step, push.examples,
                             push.late_examples, push.computed_version, *form, std::move(payload)});
    return absl::OkStatus();
  }

  absl::Status Add(const ReadEntry& read) {
    absl::Status status = CheckShard(read.shard);
    if (!status.ok()) return status;
    const absl::StatusOr<ReadForm> form = FormOf(read.shard, read.read_codec, read.held_version);
    if (!form.ok()) return form.status();
    EventsFor(read.shard)
        .push_back(ReadEvent{worker_, incarnation_, generation_, read.step, *form});
    return absl::OkStatus();
  }

  std::vector<ShardEvents> Take() { return std::move(groups_); }

 private:
  absl::Status CheckShard(ShardId shard) const {
    if (shard.value >= partition_.shard_count()) {
      return Wrong(shard, absl::StrCat("want a shard below ", partition_.shard_count()));
    }
    const ServerId home = partition_.server(shard);
    if (home == self_) return absl::OkStatus();
    return Wrong(shard,
                 absl::StrCat("lives on server ", home.value, ", this is server ", self_.value));
  }

  absl::StatusOr<ReadForm> FormOf(ShardId shard, uint32_t read_codec, Version held) const {
    if (read_codec == kReadDeltas || read_codec == kReadPublished) {
      if (!publishes_) {
        return Wrong(shard,
                     absl::StrCat("read codec ", read_codec,
                                  ": want one of parameters, for this job publishes no deltas"));
      }
      return read_codec == kReadDeltas ? ReadForm::Since(held) : ReadForm::Published();
    }
    const absl::StatusOr<CodecId> codec = CodecIdFromWire(read_codec);
    if (!codec.ok()) return Wrong(shard, absl::StrCat("read codec: ", codec.status().message()));
    if (CarriesParameters(*codec)) return ReadForm(*codec);
    return Wrong(shard, absl::StrCat("read codec: want one of parameters, got ",
                                     std::string(CodecName(*codec))));
  }

  absl::Status CheckNoPayload(const PushEntry& push) const {
    absl::Status status = CheckShard(push.shard);
    if (!status.ok() || push.payload.empty()) return status;
    return Wrong(push.shard, absl::StrCat("want no payload in a push of weight 0, got ",
                                          push.payload.size(), " bytes"));
  }

  absl::StatusOr<CheckedPayload> PayloadOf(ShardId shard, ByteChain&& bytes) const {
    RETURN_IF_ERROR(CheckShard(shard));
    auto payload = CheckPayload(std::move(bytes), partition_.value_count(shard));
    if (!payload.ok()) return Wrong(shard, payload.status().message());
    return payload;
  }

  std::vector<Event>& EventsFor(ShardId shard) {
    const auto [place, added] = places_.try_emplace(shard, groups_.size());
    if (added) groups_.push_back({shard, {}});
    return groups_[place->second].events;
  }

  const Partition& partition_;
  const ServerId self_;
  const bool publishes_;
  const WorkerId worker_;
  const Incarnation incarnation_;
  const Generation generation_;
  std::vector<ShardEvents> groups_;
  absl::flat_hash_map<ShardId, size_t> places_;
};

}  // namespace

absl::StatusOr<Partition> PartitionOf(const JoinRequest& request, uint32_t server_count) {
  if (request.servers() != server_count) {
    return absl::FailedPreconditionError(absl::StrCat("servers: the job has ", server_count,
                                                      ", the worker expects ", request.servers()));
  }
  absl::Status status = CheckShardCount(request);
  if (!status.ok()) return status;
  std::vector<TensorShape> tensors;
  for (const Tensor& tensor : request.tensors()) {
    tensors.push_back({tensor.name(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  auto partition = Partition::Make(std::move(tensors), request.shard_size(), server_count);
  if (!partition.ok() || partition->hash() == request.partition_hash()) return partition;
  return absl::FailedPreconditionError(absl::StrCat(
      "partition of the tensors in this Join: its hash here is ", absl::Hex(partition->hash()),
      ", the worker's is ", absl::Hex(request.partition_hash()), ": another version of thinwire?"));
}

absl::StatusOr<std::vector<ShardEvents>> EventsOf(WorkerFrame&& frame, const Partition& partition,
                                                  ServerId self, Generation generation,
                                                  bool publishes) {
  Grouping grouping(partition, self, publishes, frame);
  absl::Status status;
  for (SeedEntry& seed : frame.seeds) {
    if (frame.generation != generation) break;
    if (status = grouping.Add(std::move(seed)); !status.ok()) return status;
  }
  for (PushEntry& push : frame.pushes) {
    if (status = grouping.Add(std::move(push)); !status.ok()) return status;
  }
  for (const ReadEntry& read : frame.reads) {
    if (status = grouping.Add(read); !status.ok()) return status;
  }
  return grouping.Take();
}

VerdictEntry VerdictEntryOf(ShardId shard, const Judgement& judgement) {
  VerdictEntry entry;
  entry.shard = shard;
  entry.step = judgement.step;
  entry.kind = static_cast<uint32_t>(judgement.verdict);
  entry.again = judgement.again;
  entry.frontier = judgement.frontier;
  entry.version = judgement.version;
  return entry;
}

WaitingEntry WaitingEntryOf(ShardId shard, const Wait& wait) {
  WaitingEntry entry;
  entry.shard = shard;
  entry.step = wait.step;
  entry.frontier = wait.frontier;
  entry.workers = wait.unfinished;
  entry.unseeded = wait.unseeded;
  entry.live = wait.live;
  entry.wanted = wait.wanted;
  return entry;
}

ShardState ShardStateOf(ShardId shard, const JoinAnswer& answer) {
  ShardState state;
  state.set_shard(shard.value);
  state.set_open(answer.open);
  state.set_seeded(answer.seeded);
  state.set_frontier(answer.frontier.value);
  state.set_predecessor_next(answer.predecessor_next.value);
  state.set_largest_next(answer.largest_next.value);
  return state;
}

}  // namespace thinwire
