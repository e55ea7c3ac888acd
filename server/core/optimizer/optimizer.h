// Optimizer: turns one folded gradient into new masters. One call handles a whole shard.
//
// Slots are an optimizer's memory per value (momentum: 1, Adam: 2), flat arrays of the shard's length that the shard
// owns and that begin at zero (or where InitialSlot says).
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// As config.proto's Optimization, without the schedule.
struct OptimizerSpec {
  std::string name = "sgd";  // sgd, momentum, nesterov, adam, adamw, adagrad
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  bool operator==(const OptimizerSpec&) const = default;
};

// One update's numbers.
struct Update {
  float learning_rate = 0;
  float gradient_scale = 1;  // gradient = gradient_scale * sum: one over the weight that was folded
  uint64_t number = 1;       // of this shard's updates, from 1 (the version after it): Adam's bias correction
};

// Immutable, thread-safe: what changes is the shard's.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual int slot_count() const = 0;
  // Applies one update in a single pass over the arrays. REQUIRES: slots.size() == slot_count(), and every span as
  // long as sum.
  virtual void Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots) const = 0;
};

// Errors: InvalidArgument for an unknown name (lists those there are) or a number out of its range.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
