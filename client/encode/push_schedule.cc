#include "client/encode/push_schedule.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/tensor_kind.h"

namespace thinwire::client {
namespace {

absl::Status CheckPart(const char* name, double part, uint64_t planned_steps) {
  if (!(part >= 0 && part <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": not a fraction of the run (expected 0 to 1, got ", part, ")"));
  }
  if (part > 0 && planned_steps == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " ", part, ": length of the run unknown (expected planned steps, got 0)"));
  }
  return absl::OkStatus();
}

absl::Status CheckCodec(CodecSpec spec, double density) {
  spec.density = density;
  return MakeCodec(spec).status();
}

}  // namespace

CodecSpec VectorSpec(const CodecSpec& matrices) {
  const CodecId id = IsDense(matrices.id) ? matrices.id : matrices.values;
  return {.id = CarriesParameters(id) ? id : CodecId::kFp8E5m2};
}

std::vector<std::optional<CodecSpec>> ShardSpecs(std::span<const AdaptiveSpec::Arm> arms,
                                                 const KindArms& chosen,
                                                 const Partition& partition) {
  std::vector<std::optional<CodecSpec>> specs(partition.shard_count());
  for (uint32_t s = 0; s < specs.size(); ++s) {
    const TensorKind kind = TensorKindOf(partition, ShardId{s});
    const AdaptiveSpec::Arm& arm = arms[chosen[static_cast<size_t>(kind)]];
    if (arm.fastest) continue;
    specs[s] = kind == TensorKind::kVectors ? VectorSpec(arm.codec) : arm.codec;
  }
  return specs;
}

absl::StatusOr<PushSchedule> PushSchedule::Make(const CodecSpec& push, const PushWarmup& warmup,
                                                uint64_t planned_steps) {
  RETURN_IF_ERROR(CheckCodec(push, push.density));
  RETURN_IF_ERROR(CheckPart("density_warmup", warmup.density.part, planned_steps));
  RETURN_IF_ERROR(CheckPart("first_push_part", warmup.first_part, planned_steps));
  if (warmup.density.part > 0) RETURN_IF_ERROR(CheckCodec(push, warmup.density.first));
  if (warmup.first_part > 0) RETURN_IF_ERROR(CheckCodec(warmup.first, push.density));
  return PushSchedule(push, warmup, planned_steps);
}

CodecSpec PushSchedule::At(Step step) const {
  if (planned_steps_ == 0) return push_;
  const double progress = static_cast<double>(step.value) / static_cast<double>(planned_steps_);
  CodecSpec spec = progress < warmup_.first_part ? warmup_.first : push_;
  if (!IsDense(spec.id)) spec.density = warmup_.density.At(progress, push_.density);
  return spec;
}

}  // namespace thinwire::client
