// The decisions of adaptive precision (docs/adaptive_precision.md). The lead and the laboratory
// decide by these functions, which are pure.
#ifndef THINWIRE_SERVER_PROTOCOLS_PRECISION_PRECISION_CHOICE_H_
#define THINWIRE_SERVER_PROTOCOLS_PRECISION_PRECISION_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/curve/arm_choice.h"
#include "common/model/partition.h"
#include "common/model/tensor_kind.h"
#include "common/spec/push_spec.h"
#include "proto/precision.pb.h"

namespace thinwire {

// Returns whether trials begin at STEP in a run of END steps. After trials at the end of the run,
// no steps would remain for the chosen arm.
bool TrialsBeginAt(const AdaptiveSpec& spec, Step step, Step end);
// Returns the step of the decision after that at STEP, or END if there is none.
Step NextDecision(const AdaptiveSpec& spec, Step step, Step end);

// Returns ARMS with ARM for KIND, or for all kinds if KIND is nullopt.
KindArms WithArm(KindArms arms, std::optional<TensorKind> kind, uint32_t arm);
// Returns the kinds that adaptive_per_layer chooses alone: the matrices and the convolutions, if
// PARTITION has them; none if it is off.
std::vector<TensorKind> KindsChosenAlone(const AdaptiveSpec& spec, const Partition& partition);
// Returns the kind whose arm is chosen after DECISIONS decisions; nullopt: one arm is chosen for all
// kinds. ALONE is a result of KindsChosenAlone.
std::optional<TensorKind> ChosenKind(std::span<const TensorKind> alone, size_t decisions);

// A finished trial.
struct ArmTrial {
  size_t arm = 0;
  Trial trial;
  std::optional<double> encoding_error;  // nullopt: not measured
  bool removed = false;                  // by adaptive_prune: the arm cannot be chosen
};

struct PrecisionChoice {
  size_t arm = 0;
  PrecisionDecision decision;  // without `seconds` and `layers`
};

// Removes every arm whose encoding error is larger than the encoded values, unless no arm would
// remain. An arm without a measured error stays.
void Prune(std::span<ArmTrial> trials);

// Chooses among the arms of TRIALS, all of which began at STEP with this ACCURACY. NEXT is the step
// of the next decision, CURRENT the arm since the last one. REQUIRES: an arm is not removed; every
// trial has a curve.
PrecisionChoice ChoosePrecision(const AdaptiveSpec& spec, std::span<const ArmTrial> trials,
                                Step step, double accuracy, Step next,
                                std::optional<size_t> current);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PRECISION_PRECISION_CHOICE_H_
