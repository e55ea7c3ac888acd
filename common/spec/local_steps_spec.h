// LocalStepsSpec selects the local steps of a worker and their optimizer (docs/training.md). A
// worker with local steps trains with an optimizer of its own between two pushes. Immutable.
#ifndef THINWIRE_COMMON_SPEC_LOCAL_STEPS_SPEC_H_
#define THINWIRE_COMMON_SPEC_LOCAL_STEPS_SPEC_H_

#include <cstdint>
#include <ostream>
#include <string_view>

#include "common/text/problems.h"

namespace thinwire {

enum class LocalOptimizerKind : uint8_t { kSgd, kMomentum, kAdamW };

// The names of the optimizers, in the order of the enum.
inline constexpr std::string_view kLocalOptimizerNames[] = {"sgd", "momentum", "adamw"};

std::ostream& operator<<(std::ostream& out, LocalOptimizerKind kind);

// The largest number of local steps in one step.
inline constexpr uint32_t kMaxLocalSteps = 1u << 20;

struct LocalStepsSpec {
  uint32_t count = 1;  // local steps in one step of a worker; 1: the worker pushes its gradients
  LocalOptimizerKind optimizer = LocalOptimizerKind::kSgd;
  double learning_rate = 0.01;
  double momentum = 0.9;  // kMomentum only
  double weight_decay = 0;
  // A worker exchanges the model in so many fragments, one after the other during its local steps,
  // and takes `overlap` local steps while an exchange is under way (docs/streaming.md).
  uint32_t fragments = 1;
  uint32_t overlap = 0;
  double mixing = 0.5;  // the weight of the worker's own parameters after such steps
  // A slower worker takes fewer than `count` local steps (docs/training.md).
  bool by_speed = false;

  bool enabled() const { return count > 1; }
  // Returns whether local steps go on while a part of the model is exchanged.
  bool streaming() const { return fragments > 1 || overlap > 0; }
  Problems Validate() const;

  bool operator==(const LocalStepsSpec&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_LOCAL_STEPS_SPEC_H_
