// The decisions of adaptive precision (docs/adaptive_precision.md). The lead and the laboratory
// decide by these functions, which are pure.
#ifndef THINWIRE_SERVER_EDGE_LEAD_PRECISION_CHOICE_H_
#define THINWIRE_SERVER_EDGE_LEAD_PRECISION_CHOICE_H_

#include <cstddef>
#include <optional>
#include <span>

#include "common/curve/arm_choice.h"
#include "common/ids.h"
#include "common/spec/push_spec.h"
#include "proto/precision.pb.h"

namespace thinwire {

// Returns whether trials begin at STEP in a run of END steps. After trials at the end of the run,
// no steps would remain for the chosen arm.
bool TrialsBeginAt(const AdaptiveSpec& spec, Step step, Step end);
// Returns the step of the decision after that at STEP, or END if there is none.
Step NextDecision(const AdaptiveSpec& spec, Step step, Step end);

// A finished trial.
struct ArmTrial {
  size_t arm = 0;
  Trial trial;
  std::optional<double> encoding_error;  // nullopt: not measured
  bool removed = false;                  // by adaptive_prune: the arm cannot be chosen
};

struct PrecisionChoice {
  size_t arm = 0;
  PrecisionDecision decision;  // without `seconds`
};

// Chooses among the arms of TRIALS, all of which began at STEP with this ACCURACY. NEXT is the step
// of the next decision, CURRENT the arm since the last one. REQUIRES: an arm is not removed; every
// trial has a curve.
PrecisionChoice ChoosePrecision(const AdaptiveSpec& spec, std::span<const ArmTrial> trials,
                                Step step, double accuracy, Step next,
                                std::optional<size_t> current);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_LEAD_PRECISION_CHOICE_H_
