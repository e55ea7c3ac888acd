// PushSpec configures the processing of a gradient between the backward pass and the wire.
//
//   gradient -> clip -> momentum correction -> + residual (error feedback) -> codec -> wire
//
// The codec is fixed, changes once during the run (PushWarmup), or is chosen at run time by a rule
// from a list of candidates or by trials (AdaptiveSpec). docs/training.md describes this sequence,
// docs/codecs.md the codecs. Immutable.
#ifndef THINWIRE_COMMON_SPEC_PUSH_SPEC_H_
#define THINWIRE_COMMON_SPEC_PUSH_SPEC_H_

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/codec/sparse/density_warmup.h"
#include "common/codec/table.h"
#include "common/model/tensor_kind.h"
#include "common/text/problems.h"

namespace thinwire {

// The rule that chooses the push codec at run time; client/encode/codec_choice.h has the formula.
enum class ChoiceRule : uint8_t {
  kAuto,     // chooses the codec again and again, from the measured goodput
  kFastest,  // chooses the codec once, after the worker's first step
};

std::ostream& operator<<(std::ostream& out, ChoiceRule rule);

// The warm-up of pushes: a density warm-up, and a different codec in the first part of the run.
// Parts are fractions of the planned steps, 0 to 1.
struct PushWarmup {
  DensityWarmup density;
  double first_part = 0;
  CodecSpec first;  // the codec in the first part of the run; `density` gives its density

  bool operator==(const PushWarmup&) const = default;
};

// The number of tests in a trial of adaptive precision, so that a learning curve has enough points.
// A trial has at least as many steps.
inline constexpr uint32_t kTestsPerTrial = 8;
// The number of parts at the end of a trial in which the encoding error is measured. With less than
// half of all parts, the median time of a part is that of a part without a measurement.
inline constexpr uint32_t kMeasuredParts = 3;
// Returns the number of steps of a trial before its part PART begins. A trial has kTestsPerTrial
// parts of about equal length; each ends with a test.
constexpr uint64_t StepsBeforePart(uint64_t trial_steps, uint64_t part) {
  return trial_steps * part / kTestsPerTrial;
}

// Adaptive precision: short trials of the arms choose the codec again and again
// (docs/adaptive_precision.md).
struct AdaptiveSpec {
  // An arm is a codec, or the rule kFastest with the candidates of PushSpec.
  struct Arm {
    bool fastest = false;
    CodecSpec codec;

    bool operator==(const Arm&) const = default;
  };

  std::vector<Arm> arms;
  uint64_t speculate_steps = 100;  // of the trial of one arm
  uint64_t continue_steps = 1000;  // from the end of the trials to the next ones
  bool prune = false;  // removes an arm if its codec's error is larger than the encoded values
  // All kinds of tensors have the arm of the first decision. Every later one changes the arm of one
  // kind, the matrices or the convolutions.
  bool per_layer = false;

  bool operator==(const AdaptiveSpec&) const = default;
};

// Returns the name of ARM: that of its codec, or "fastest".
std::string_view ArmName(const AdaptiveSpec::Arm& arm);

// The arm of each kind of tensors, by the number of the kind: a position in AdaptiveSpec::arms.
using KindArms = std::array<uint32_t, kTensorKinds>;

// Returns "fp32", or "fp32 (matrices), fp8_e5m2 (convolutions), fp32 (vectors)". REQUIRES: CHOSEN
// are positions in ARMS.
std::string ArmNames(std::span<const AdaptiveSpec::Arm> arms, const KindArms& chosen);

// Momentum correction: the worker instead of the server applies momentum (Lin et al. 2018, section
// 3.1).
struct CorrectionOptions {
  bool enabled = false;
  float momentum = 0.9f;
  bool nesterov = false;
  bool factor_masking = true;  // sets the momentum of sent values to 0

  bool operator==(const CorrectionOptions&) const = default;
};

struct PushSpec {
  CodecSpec codec;
  // If set, the worker chooses the push codec among CANDIDATES and fp32, and the fields CODEC and
  // WARMUP have no effect.
  std::optional<ChoiceRule> choose;
  std::vector<CodecSpec> candidates;  // the codecs to choose from, in descending order of accuracy
  // If set, the fields CODEC, CHOOSE and WARMUP have no effect.
  std::optional<AdaptiveSpec> adaptive;
  bool error_feedback = true;
  double residual_decay = 1;  // the residual is multiplied by it before each step
  PushWarmup warmup;
  CorrectionOptions correction;
  // The largest L2 norm of the gradient of all workers together; 0: no clipping.
  double gradient_clip = 0;

  Problems Validate() const;

  bool operator==(const PushSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const PushSpec& spec);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_PUSH_SPEC_H_
