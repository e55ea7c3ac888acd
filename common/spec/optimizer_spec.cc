#include "common/spec/optimizer_spec.h"

namespace thinwire {

std::ostream& operator<<(std::ostream& out, OptimizerKind kind) { return out << Traits(kind).name; }

Problems OptimizerSpec::Validate() const {
  Problems problems;
  problems.RequireDecay("momentum", momentum);
  problems.RequireDecay("beta1", beta1);
  problems.RequireDecay("beta2", beta2);
  // With epsilon 0, the update of a parameter whose gradients were all 0 would be 0 / 0.
  problems.RequirePositiveFloat("epsilon", epsilon);
  problems.RequireFloat("weight_decay", weight_decay);
  problems.RequirePositiveFloat("trust_coefficient", trust_coefficient);
  problems.RequireDecay("parameter_average", parameter_average);
  return problems;
}

std::ostream& operator<<(std::ostream& out, const OptimizerSpec& spec) {
  const OptimizerTraits& traits = Traits(spec.kind);
  out << traits.name;
  if (traits.uses_momentum) out << " momentum " << spec.momentum;
  if (traits.uses_betas) out << " beta1 " << spec.beta1 << " beta2 " << spec.beta2;
  if (traits.uses_epsilon) out << " epsilon " << spec.epsilon;
  if (traits.uses_trust_coefficient) out << " trust_coefficient " << spec.trust_coefficient;
  out << " weight_decay " << spec.weight_decay;
  if (spec.parameter_average != 0) out << " parameter_average " << spec.parameter_average;
  return out;
}

}  // namespace thinwire
