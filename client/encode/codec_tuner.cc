#include "client/encode/codec_tuner.h"

#include <map>
#include <optional>
#include <utility>

#include "client/encode/codec_speed.h"
#include "common/base/status_macros.h"
#include "common/model/tensor_kind.h"

namespace thinwire::client {
namespace {

// Returns the costs of CANDIDATES for shards of VALUES values.
absl::StatusOr<std::vector<CodecCost>> Measure(const std::vector<CodecSpec>& candidates,
                                               uint64_t values, const ClientOptions& options,
                                               const Device* device, Clock& clock) {
  const double share = DecodeShare(options.worker_count, options.server_count);
  ASSIGN_OR_RETURN(std::vector<CodecCost> costs,
                   MeasureCodecs(candidates, values, options, device, clock));
  for (CodecCost& cost : costs) cost.decode_seconds *= share;
  return costs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CodecTuner>> CodecTuner::Make(const Partition& partition,
                                                             const ClientOptions& options,
                                                             const Device* device, Clock& clock) {
  std::unique_ptr<CodecTuner> tuner(new CodecTuner);
  std::map<TensorKind, uint32_t> number_of;
  for (const auto& [kind, values] : LargestShards(partition)) {
    ASSIGN_OR_RETURN(std::vector<CodecCost> costs, Measure(CandidatesOf(kind, options.candidates),
                                                           values, options, device, clock));
    number_of[kind] = static_cast<uint32_t>(tuner->groups_.size());
    CodecChoice choice(*options.choose, std::move(costs));
    auto codec = MakeCodec(choice.spec()).value();
    tuner->groups_.push_back({.name = std::string(TensorKindName(kind)),
                              .choice = std::move(choice),
                              .codec = std::move(codec)});
  }
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    tuner->group_of_.push_back(number_of[TensorKindOf(partition, ShardId{s})]);
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
