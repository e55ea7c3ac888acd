#include "common/spec/staleness_spec.h"

namespace thinwire {

Problems StalenessSpec::Validate() const {
  Problems problems;
  if (policy == StalenessPolicy::kDrop && bound == 0) {
    // Names the field that is given, because messages show its place in the job file.
    problems.Add("staleness_policy",
                 "drop requires a staleness_bound (expected at least 1, got 0)");
  }
  problems.RequireFloat("dcasgd_lambda", lambda);
  problems.Require(decay >= 0 && decay < 1, "dcasgd_decay", "at least 0 and below 1", decay);
  return problems;
}

std::ostream& operator<<(std::ostream& out, const StalenessSpec& spec) {
  out << "staleness policy " << kStalenessPolicyNames[static_cast<size_t>(spec.policy)];
  if (spec.policy == StalenessPolicy::kDrop) out << " above " << spec.bound;
  if (spec.policy == StalenessPolicy::kDcasgd) {
    out << " with lambda " << spec.lambda;
    if (spec.decay != 0) out << " and decay " << spec.decay;
  }
  return out;
}

}  // namespace thinwire
