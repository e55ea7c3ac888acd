#include "common/spec/push_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/spec/sparse_update_spec.h"

namespace thinwire {
namespace {

// Sums of steps stay far below the largest step.
constexpr uint64_t kMostSteps = 1'000'000'000;

Problems ValidateAdaptive(const AdaptiveSpec& adaptive) {
  Problems problems;
  for (size_t i = 0; i < adaptive.arms.size(); ++i) {
    const AdaptiveSpec::Arm& arm = adaptive.arms[i];
    const std::string field = absl::StrCat("adaptive_candidates[", i, "]");
    if (ArmName(arm) == "unknown") {
      problems.Add(field, "not a candidate (expected a codec or fastest, got auto or adaptive)");
    } else if (std::ranges::count(adaptive.arms, arm) > 1) {
      problems.Add(field, absl::StrCat("given twice (expected each candidate once, got ",
                                       std::string(ArmName(arm)), " again)"));
    }
    problems.Append(arm.codec.Validate());
  }
  problems.RequireInteger("adaptive_speculate_steps", adaptive.speculate_steps, kTestsPerTrial,
                          kMostSteps);
  problems.RequireInteger("adaptive_continue_steps", adaptive.continue_steps, 1, kMostSteps);
  return problems;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, ChoiceRule rule) {
  return out << (rule == ChoiceRule::kAuto ? "auto" : "fastest");
}

std::string_view ArmName(const AdaptiveSpec::Arm& arm) {
  return arm.fastest ? "fastest" : CodecName(arm.codec.id);
}

std::string ArmNames(std::span<const AdaptiveSpec::Arm> arms, const KindArms& chosen) {
  if (std::ranges::count(chosen, chosen[0]) == std::ssize(chosen)) {
    return std::string(ArmName(arms[chosen[0]]));
  }
  std::string names;
  for (size_t kind = 0; kind < chosen.size(); ++kind) {
    absl::StrAppend(&names, kind == 0 ? "" : ", ", std::string(ArmName(arms[chosen[kind]])), " (",
                    std::string(TensorKindName(static_cast<TensorKind>(kind))), ")");
  }
  return names;
}

Problems PushSpec::Validate() const {
  Problems problems = codec.Validate();
  if (adaptive.has_value()) problems.Append(ValidateAdaptive(*adaptive));
  for (const CodecSpec& candidate : candidates) problems.Append(candidate.Validate());
  problems.Append(warmup.first.Validate());
  problems.Append(ValidateDensityWarmup(warmup.density));
  problems.RequireFraction("first_push_part", warmup.first_part);
  problems.RequireDecay("correction_momentum", correction.momentum);
  problems.RequireFloat("gradient_clip", gradient_clip);
  problems.RequireFraction("residual_decay", residual_decay);
  // Momentum correction accumulates the momentum of unsent values in the residual, so it requires
  // error feedback.
  if (correction.enabled && !error_feedback) {
    problems.Add("error_feedback", "required by momentum_correction (expected true, got false)");
  }
  return problems;
}

std::ostream& operator<<(std::ostream& out, const PushSpec& spec) {
  if (spec.adaptive.has_value()) {
    out << "adaptive";
    for (const AdaptiveSpec::Arm& arm : spec.adaptive->arms) out << " " << ArmName(arm);
  } else if (spec.choose.has_value()) {
    out << *spec.choose;
    for (const CodecSpec& candidate : spec.candidates) out << " " << candidate.id;
  } else {
    out << spec.codec.id;
  }
  if (!spec.error_feedback) out << ", no error feedback";
  if (spec.residual_decay < 1) out << ", residual decay " << spec.residual_decay;
  if (spec.warmup.density.part > 0) out << ", density warm-up " << spec.warmup.density.part;
  if (spec.warmup.first_part > 0) {
    out << ", " << spec.warmup.first.id << " for " << spec.warmup.first_part << " of the run";
  }
  if (spec.correction.enabled) out << ", momentum correction " << spec.correction.momentum;
  if (spec.gradient_clip > 0) out << ", clip " << spec.gradient_clip;
  return out;
}

}  // namespace thinwire
