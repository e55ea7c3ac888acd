// PushSpec configures the way of a gradient from the backward pass to the wire.
//
//   gradient -> clip -> momentum correction -> + residual (error feedback) -> codec -> wire
//
// The codec is fixed, changes once during the run (PushWarmup), or is chosen at run time by a rule
// from a list of candidates. docs/training.md describes the steps, docs/codecs.md the codecs.
// Immutable.
#ifndef THINWIRE_COMMON_SPEC_PUSH_SPEC_H_
#define THINWIRE_COMMON_SPEC_PUSH_SPEC_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "common/codec/table.h"
#include "common/density_warmup.h"
#include "common/problems.h"

namespace thinwire {

// How the push codec is chosen at run time; client/encode/codec_choice.h has the formula.
enum class ChoiceRule : uint8_t {
  kAuto,     // follows the measured network speed during the whole run
  kFastest,  // takes the fastest codec after the first step, for good
};

std::ostream& operator<<(std::ostream& out, ChoiceRule rule);

// How pushes begin before they go on with the push codec. Parts are parts of the planned steps, 0
// to 1.
struct PushWarmup {
  DensityWarmup density;
  double first_part = 0;
  CodecSpec first;  // the codec of that part; DENSITY sets its density

  bool operator==(const PushWarmup&) const = default;
};

// Momentum at the worker instead of at the server (Lin et al. 2018, section 3.1).
struct CorrectionOptions {
  bool enabled = false;
  float momentum = 0.9f;
  bool nesterov = false;
  bool factor_masking = true;  // forget the momentum of values that were sent

  bool operator==(const CorrectionOptions&) const = default;
};

struct PushSpec {
  CodecSpec codec;
  // With a rule, the codec is one of CANDIDATES or fp32; CODEC and WARMUP have no effect.
  std::optional<ChoiceRule> choose;
  std::vector<CodecSpec> candidates;  // the most exact first
  bool error_feedback = true;
  PushWarmup warmup;
  CorrectionOptions correction;
  // The largest norm of the gradient of all workers together; 0: no clipping.
  double gradient_clip = 0;

  Problems Validate() const;

  bool operator==(const PushSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const PushSpec& spec);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_PUSH_SPEC_H_
