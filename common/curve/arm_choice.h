// Chooses among the arms of adaptive precision: the arm with the largest predicted gain of accuracy
// per second, from the learning curves of short trials that began at the same state (AdaPrec;
// docs/adaptive_precision.md).
//
//   gain = (predicted accuracy at the next decision - accuracy at the beginning) / (seconds per step * steps)
//
// Another arm replaces the current one only if its gain is larger by more than one standard
// deviation of the difference.
#ifndef THINWIRE_COMMON_CURVE_ARM_CHOICE_H_
#define THINWIRE_COMMON_CURVE_ARM_CHOICE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/curve/curve_prediction.h"

namespace thinwire {

// The trial of one arm.
struct Trial {
  std::vector<CurvePoint> curve;  // x in steps since the beginning of the run
  double seconds_per_step = 0;    // above 0
};

// The state at which all trials began, and the next decision. Steps are those since the beginning
// of the run.
struct TrialStart {
  double accuracy = 0;
  double step = 0;
  double next_decision = 0;  // a step after the last one of the trials
};

struct ArmGain {
  CurvePrediction predicted;  // at the next decision
  double per_second = 0;
  double deviation = 0;  // of per_second
};

struct ArmChoice {
  size_t chosen = 0;
  std::vector<ArmGain> gains;  // by arm
};

// Returns the choice. CURRENT is the arm since the last decision; nullopt at the first one.
// REQUIRES: TRIALS are not empty and have curves.
ArmChoice ChooseArm(std::span<const Trial> trials, const TrialStart& start,
                    std::optional<size_t> current);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CURVE_ARM_CHOICE_H_
