#include "client/push_schedule.h"

#include "absl/strings/str_cat.h"

namespace thinwire::client {
namespace {

absl::Status CheckPart(const char* name, double part, uint64_t planned_steps) {
  if (!(part >= 0 && part <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": want a part of the run from 0 to 1, got ", part));
  }
  if (part > 0 && planned_steps == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " ", part, ": want the planned steps of the run, got 0"));
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

absl::StatusOr<PushSchedule> PushSchedule::Make(const CodecSpec& push, const PushWarmup& warmup,
                                                uint64_t planned_steps) {
  absl::Status status = CheckCodec(push, push.density);
  if (status.ok()) status = CheckPart("density warm-up", warmup.density.part, planned_steps);
  if (status.ok()) status = CheckPart("first codec", warmup.first_part, planned_steps);
  if (status.ok() && warmup.density.part > 0) status = CheckCodec(push, warmup.density.first);
  if (status.ok() && warmup.first_part > 0) status = CheckCodec(warmup.first, push.density);
  if (!status.ok()) return status;
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
