#include "server/shards/convert.h"

#include <bit>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/spec/place_tensors.h"
#include "common/text/quoted.h"
#include "proto/join_tensors.h"
#include "server/core/read_form.h"

namespace thinwire {
namespace {

// Floats on the wire are little-endian, as are all supported machines.
static_assert(std::endian::native == std::endian::little);

absl::Status Wrong(ShardId shard, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("shard ", shard.value, ": ", what));
}

absl::Status CheckAtMost(ShardId shard, absl::string_view field, uint64_t most, uint64_t got) {
  if (got <= most) return absl::OkStatus();
  return Wrong(shard,
               absl::StrCat(field, ": too large (expected at most ", most, ", got ", got, ")"));
}

// Converts the seeds, pushes and reads of a frame to events and groups the events by shard. The
// shards are in the order in which they first occur in the frame.
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
                   absl::StrCat("seed: must be fp32 (got ", std::string(CodecName(codec)), ")"));
    }
    if (!PayloadIsFinite(payload)) {
      return Wrong(seed.shard, "seed: has a NaN or an infinity");
    }
    EventsFor(seed.shard).push_back(SeedEvent{std::move(payload)});
    return absl::OkStatus();
  }

  absl::Status Add(PushEntry&& push) {
    CheckedPayload payload;
    RETURN_IF_ERROR(CheckAtMost(push.shard, "step", kLargestStep.value, push.step.value));
    RETURN_IF_ERROR(CheckAtMost(push.shard, "examples", kMostExamples, push.examples));
    RETURN_IF_ERROR(CheckAtMost(push.shard, "late_examples", kMostExamples, push.late_examples));
    if (!IsRateFactor(push.rate_factor)) {
      return Wrong(
          push.shard,
          absl::StrCat("rate_factor: out of range (expected a finite number of at least 0, "
                       "got ",
                       push.rate_factor, ")"));
    }
    if (push.examples == 0) {
      RETURN_IF_ERROR(CheckNoPayload(push));
    } else {
      ASSIGN_OR_RETURN(payload, PayloadOf(push.shard, std::move(push.payload)));
    }
    ASSIGN_OR_RETURN(const ReadForm form, FormOf(push));
    EventsFor(push.shard)
        .push_back(PushEvent{worker_, incarnation_, generation_, push.step, push.examples,
                             push.late_examples, push.computed_version, form, std::move(payload),
                             push.rate_factor});
    return absl::OkStatus();
  }

  absl::Status Add(const ReadEntry& read) {
    RETURN_IF_ERROR(CheckShard(read.shard));
    RETURN_IF_ERROR(CheckAtMost(read.shard, "step", kLargestStep.value, read.step.value));
    ASSIGN_OR_RETURN(const ReadForm form, FormOf(read));
    EventsFor(read.shard).push_back(ReadEvent{worker_, incarnation_, generation_, read.step, form});
    return absl::OkStatus();
  }

  std::vector<ShardEvents> Take() { return std::move(groups_); }

 private:
  absl::Status CheckShard(ShardId shard) const {
    if (shard.value >= partition_.shard_count()) {
      return Wrong(shard, absl::StrCat("does not exist (expected a shard below ",
                                       partition_.shard_count(), ")"));
    }
    const ServerId home = partition_.server(shard);
    if (home == self_) return absl::OkStatus();
    return Wrong(shard, absl::StrCat("lives on another server (expected server ", self_.value,
                                     ", got server ", home.value, ")"));
  }

  // ENTRY: a push or a read.
  template <typename Entry>
  absl::StatusOr<ReadForm> FormOf(const Entry& entry) const {
    const ShardId shard = entry.shard;
    const uint32_t read_codec = entry.read_codec;
    if (read_codec == kReadDeltas || read_codec == kReadPublished) {
      if (!publishes_) {
        return Wrong(shard,
                     absl::StrCat("read_codec: this job does not publish deltas (expected a dense "
                                  "codec, got ",
                                  read_codec, ")"));
      }
      if (read_codec == kReadPublished) return ReadForm::Published();
      ReadForm form = ReadForm::Since(entry.held_version);
      form.follows = entry.follows;
      return form;
    }
    const absl::StatusOr<CodecId> codec = CodecIdFromWire(read_codec);
    if (!codec.ok()) {
      return Wrong(shard,
                   absl::StrCat("read_codec: unknown number (expected the number of a dense "
                                "codec, ",
                                kReadDeltas, " or ", kReadPublished, ", got ", read_codec, ")"));
    }
    if (CarriesParameters(*codec)) return ReadForm(*codec);
    return Wrong(shard,
                 absl::StrCat("read_codec: cannot carry parameters (expected a dense codec, got ",
                              std::string(CodecName(*codec)), ")"));
  }

  absl::Status CheckNoPayload(const PushEntry& push) const {
    RETURN_IF_ERROR(CheckShard(push.shard));
    if (push.payload.empty()) return absl::OkStatus();
    return Wrong(push.shard, absl::StrCat("payload: must be empty in a push of weight 0 (got ",
                                          push.payload.size(), " bytes)"));
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

// Returns the parameter group of TENSOR for a message.
std::string PlaceText(const TensorShape& tensor) {
  return absl::StrCat("group ", tensor.group, tensor.whole ? " in whole tensors" : "",
                      tensor.apart ? ", apart" : "");
}

}  // namespace

absl::StatusOr<Partition> PartitionOf(const JoinRequest& request, uint32_t server_count,
                                      std::span<const GroupSpec> groups) {
  if (request.servers() != server_count) {
    return absl::FailedPreconditionError(absl::StrCat("servers: differs from the job's (expected ",
                                                      server_count, ", got ", request.servers(),
                                                      ")"));
  }
  std::vector<TensorShape> tensors = TensorsOf(request);
  std::vector<TensorShape> placed = tensors;
  RETURN_IF_ERROR(PlaceTensors(groups, placed));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] == placed[i]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "tensor ", Quoted(tensors[i].name), ": another parameter group than in the job (expected ",
        PlaceText(placed[i]), ", got ", PlaceText(tensors[i]), ")"));
  }
  auto partition = Partition::Make(std::move(tensors), request.shard_size(), server_count);
  if (!partition.ok() || partition->hash() == request.partition_hash()) return partition;
  return absl::FailedPreconditionError(absl::StrCat(
      "partition_hash: differs from the hash of the request's tensors; is the worker of another "
      "version? (expected ",
      absl::Hex(partition->hash()), ", got ", absl::Hex(request.partition_hash()), ")"));
}

absl::StatusOr<std::vector<ShardEvents>> EventsOf(WorkerFrame&& frame, const Partition& partition,
                                                  ServerId self, Generation generation,
                                                  bool publishes) {
  Grouping grouping(partition, self, publishes, frame);
  for (SeedEntry& seed : frame.seeds) {
    if (frame.generation != generation) break;
    RETURN_IF_ERROR(grouping.Add(std::move(seed)));
  }
  for (PushEntry& push : frame.pushes) {
    RETURN_IF_ERROR(grouping.Add(std::move(push)));
  }
  for (const ReadEntry& read : frame.reads) {
    RETURN_IF_ERROR(grouping.Add(read));
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

WaitingEntry WaitingEntryOf(ShardId shard, const BlockedRead& read) {
  WaitingEntry entry;
  entry.shard = shard;
  entry.step = read.step;
  entry.frontier = read.frontier;
  entry.workers = read.unfinished;
  entry.unseeded = read.unseeded;
  entry.live = read.live;
  entry.wanted = read.wanted;
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

std::vector<MastersChunk> MastersChunksOf(const Partition& partition, ShardId shard,
                                          std::span<const float> values) {
  std::vector<MastersChunk> chunks;
  for (const Segment& segment : partition.segments(shard)) {
    MastersChunk& chunk = chunks.emplace_back();
    chunk.set_tensor(partition.tensors()[segment.tensor].name);
    chunk.set_offset(segment.offset);
    chunk.set_values(values.data(), segment.count * sizeof(float));
    values = values.subspan(segment.count);
  }
  return chunks;
}

}  // namespace thinwire
