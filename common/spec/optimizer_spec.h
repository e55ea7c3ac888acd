// OptimizerSpec selects the optimizer of the servers and its settings. docs/optimizers.md has the
// formulas.
//
// kOptimizers has one row per optimizer. A new optimizer needs a row here, a value in
// proto/job.proto with the same name and number, and a factory in server/core/optimizer. Immutable.
#ifndef THINWIRE_COMMON_SPEC_OPTIMIZER_SPEC_H_
#define THINWIRE_COMMON_SPEC_OPTIMIZER_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "common/text/problems.h"

namespace thinwire {

enum class OptimizerKind : uint8_t {
  kSgd,
  kMomentum,
  kNesterov,
  kAdam,
  kAdamW,
  kAdagrad,
  kLion,
  kLars,
  kLamb,
  kAverage,
  kSignSgd
};

struct OptimizerTraits {
  std::string_view name;
  // True if the optimizer's formula reads the setting momentum, the two betas, epsilon or
  // trust_coefficient. Every formula reads the learning rate and weight_decay, except that of an
  // optimizer with holds_average.
  bool uses_momentum = false;
  bool uses_betas = false;
  bool uses_epsilon = false;
  bool uses_trust_coefficient = false;
  // True if the optimizer has slots, which are its state per value.
  bool has_slots = false;
  // True if an update may change a parameter whose gradient is 0, because the optimizer keeps a
  // running mean of gradients.
  bool has_velocity = false;
  // True if the update of a value depends on norms of its whole tensor. A shard then holds whole
  // tensors (docs/decisions/0109), or shards share the sums of a tensor (docs/decisions/0225).
  bool reads_norms = false;
  // True if the masters are the mean gradient of the last round, for workers that keep the
  // parameters themselves (docs/decisions/0162).
  bool holds_average = false;
  // True if the update does not depend on the magnitudes of gradients.
  bool reads_only_signs = false;
};

// One row per optimizer, in the order of the enum OptimizerKind.
inline constexpr OptimizerTraits kOptimizers[] = {
    {.name = "sgd"},
    {.name = "momentum", .uses_momentum = true, .has_slots = true, .has_velocity = true},
    {.name = "nesterov", .uses_momentum = true, .has_slots = true, .has_velocity = true},
    {.name = "adam",
     .uses_betas = true,
     .uses_epsilon = true,
     .has_slots = true,
     .has_velocity = true},
    {.name = "adamw",
     .uses_betas = true,
     .uses_epsilon = true,
     .has_slots = true,
     .has_velocity = true},
    {.name = "adagrad", .uses_epsilon = true, .has_slots = true},
    {.name = "lion", .uses_betas = true, .has_slots = true, .has_velocity = true},
    {.name = "lars",
     .uses_momentum = true,
     .uses_trust_coefficient = true,
     .has_slots = true,
     .has_velocity = true,
     .reads_norms = true},
    {.name = "lamb",
     .uses_betas = true,
     .uses_epsilon = true,
     .has_slots = true,
     .has_velocity = true,
     .reads_norms = true},
    {.name = "average", .holds_average = true},
    {.name = "sign_sgd", .reads_only_signs = true},
};

constexpr const OptimizerTraits& Traits(OptimizerKind kind) {
  return kOptimizers[static_cast<size_t>(kind)];
}

std::ostream& operator<<(std::ostream& out, OptimizerKind kind);

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  double parameter_average = 0;  // the decay of the moving average of the parameters; 0: no average

  // Checks every setting, also settings that this optimizer does not read.
  Problems Validate() const;

  bool operator==(const OptimizerSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const OptimizerSpec& spec);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_OPTIMIZER_SPEC_H_
