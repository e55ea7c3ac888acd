#include "client/encode/codec_tuner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "client/encode/codec_speed.h"
#include "common/status_macros.h"

namespace thinwire::client {
namespace {

enum class Kind { kMatrices, kConvolutions, kVectors };

std::string NameOf(Kind kind) {
  switch (kind) {
    case Kind::kMatrices:
      return "matrices";
    case Kind::kConvolutions:
      return "convolutions";
    case Kind::kVectors:
      return "vectors";
  }
  return "";
}

Kind KindOf(const Partition& partition, ShardId shard) {
  const size_t dimensions = partition.tensors()[partition.segments(shard)[0].tensor].shape.size();
  if (dimensions < 2) return Kind::kVectors;
  return dimensions == 2 ? Kind::kMatrices : Kind::kConvolutions;
}

// Returns the candidate codecs for tensor groups of KIND. The first candidate is always fp32, even
// if the options do not list fp32, so that the client can choose fp32 if it is the fastest codec.
std::vector<CodecSpec> Candidates(const ClientOptions& options, Kind kind) {
  std::vector<CodecSpec> candidates = {{.id = CodecId::kFp32}};
  for (const CodecSpec& spec : options.candidates) {
    const bool fits = kind != Kind::kVectors || CarriesParameters(spec.id);
    if (fits && spec.id != CodecId::kFp32) candidates.push_back(spec);
  }
  return candidates;
}

// Returns the costs of CANDIDATES for shards of VALUES values. A server decodes the pushes of all
// workers for its own shards, so the decoding time is multiplied by the number of workers per
// server (at least 1).
absl::StatusOr<std::vector<CodecCost>> Measure(const std::vector<CodecSpec>& candidates,
                                               uint64_t values, const ClientOptions& options,
                                               const Device* device, Clock& clock) {
  const double share = std::max(
      1.0, static_cast<double>(options.worker_count) / static_cast<double>(options.server_count));
  ASSIGN_OR_RETURN(std::vector<CodecCost> costs,
                   MeasureCodecs(candidates, values, options, device, clock));
  for (CodecCost& cost : costs) cost.decode_seconds *= share;
  return costs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CodecTuner>> CodecTuner::Make(const Partition& partition,
                                                             const ClientOptions& options,
                                                             const Device* device, Clock& clock) {
  std::map<Kind, uint64_t> largest;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    uint64_t& values = largest[KindOf(partition, ShardId{s})];
    values = std::max(values, partition.value_count(ShardId{s}));
  }
  std::unique_ptr<CodecTuner> tuner(new CodecTuner);
  std::map<Kind, uint32_t> group_of_kind;
  for (const auto& [kind, values] : largest) {
    ASSIGN_OR_RETURN(std::vector<CodecCost> costs,
                     Measure(Candidates(options, kind), values, options, device, clock));
    group_of_kind[kind] = static_cast<uint32_t>(tuner->groups_.size());
    CodecChoice choice(*options.choose, std::move(costs));
    auto codec = MakeCodec(choice.spec()).value();
    tuner->groups_.push_back(
        {.name = NameOf(kind), .choice = std::move(choice), .codec = std::move(codec)});
  }
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    tuner->group_of_.push_back(group_of_kind[KindOf(partition, ShardId{s})]);
  }
  return tuner;
}

bool CodecTuner::EndStep() {
  const std::optional<double> goodput = meter_.EndStep();
  if (!goodput.has_value()) return false;
  bool changed = false;
  for (Group& group : groups_) {
    if (!group.choice.Update(*goodput)) continue;
    group.codec = MakeCodec(group.choice.spec()).value();  // MeasureCodecs has validated the spec
    changed = true;
  }
  return changed;
}

std::vector<GroupCodec> CodecTuner::choices() const {
  std::vector<GroupCodec> choices;
  for (const Group& group : groups_) {
    choices.push_back({.group = group.name,
                       .codec = std::string(CodecName(group.choice.spec().id)),
                       .reason = group.choice.reason()});
  }
  return choices;
}

}  // namespace thinwire::client
