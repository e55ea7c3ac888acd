#include "common/spec/push_spec.h"

#include "common/spec/sparse_update_spec.h"

namespace thinwire {

std::ostream& operator<<(std::ostream& out, ChoiceRule rule) {
  return out << (rule == ChoiceRule::kAuto ? "auto" : "fastest");
}

Problems PushSpec::Validate() const {
  Problems problems = codec.Validate();
  for (const CodecSpec& candidate : candidates) problems.Append(candidate.Validate());
  problems.Append(warmup.first.Validate());
  problems.Append(ValidateDensityWarmup(warmup.density));
  problems.RequireFraction("first_push_part", warmup.first_part);
  problems.RequireDecay("correction_momentum", correction.momentum);
  problems.RequireFloat("gradient_clip", gradient_clip);
  // Momentum correction accumulates the momentum of unsent values in the residual, so it requires
  // error feedback.
  if (correction.enabled && !error_feedback) {
    problems.Add("error_feedback", "required by momentum_correction (expected true, got false)");
  }
  return problems;
}

std::ostream& operator<<(std::ostream& out, const PushSpec& spec) {
  if (spec.choose.has_value()) {
    out << *spec.choose;
    for (const CodecSpec& candidate : spec.candidates) out << " " << candidate.id;
  } else {
    out << spec.codec.id;
  }
  if (!spec.error_feedback) out << ", no error feedback";
  if (spec.warmup.density.part > 0) out << ", density warm-up " << spec.warmup.density.part;
  if (spec.warmup.first_part > 0) {
    out << ", " << spec.warmup.first.id << " for " << spec.warmup.first_part << " of the run";
  }
  if (spec.correction.enabled) out << ", momentum correction " << spec.correction.momentum;
  if (spec.gradient_clip > 0) out << ", clip " << spec.gradient_clip;
  return out;
}

}  // namespace thinwire
