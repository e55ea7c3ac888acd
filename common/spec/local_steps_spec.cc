#include "common/spec/local_steps_spec.h"

namespace thinwire {

std::ostream& operator<<(std::ostream& out, LocalOptimizerKind kind) {
  return out << kLocalOptimizerNames[static_cast<size_t>(kind)];
}

Problems LocalStepsSpec::Validate() const {
  Problems problems;
  problems.RequireInteger("local_steps", count, 1, kMaxLocalSteps);
  problems.RequireFloat("local_learning_rate", learning_rate);
  problems.RequireDecay("local_momentum", momentum);
  problems.RequireFloat("local_weight_decay", weight_decay);
  if (count >= 1) problems.RequireInteger("fragments", fragments, 1, count);
  // The exchange of a fragment ends before that of the next one begins.
  if (fragments >= 1 && fragments <= count) {
    problems.RequireInteger("overlap_steps", overlap, 0, count / fragments - 1);
  }
  problems.RequireFraction("mixing", mixing);
  return problems;
}

}  // namespace thinwire
