// Optimizer: turns one folded gradient into new masters. One call handles many values.
//
//   name       slots   an update, rate being the learning rate, x a master, g its gradient
//   sgd        -       x -= rate g
//   momentum   u       u = momentum u + g;  x -= rate u
//   nesterov   u       u = momentum u + g;  x -= rate (g + momentum u)
//   adam       m v     m, v: decaying means of g and g^2;  x -= rate m / (sqrt(v) + epsilon)
//   adamw      m v     the same, with weight decay apart from g
//   adagrad    s       s += g^2;  x -= rate g / (sqrt(s) + epsilon)
//
// docs/optimizers.md has them in full, and what becomes of an update that has entries for a few
// values only (sparse_update.h). Slots are an optimizer's memory per value, flat arrays of
// the shard's length that the shard owns and that begin at zero. The same calls give the same bits
// on every machine, however a shard's values are cut into calls.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/spec/optimizer_spec.h"

namespace thinwire {

// One update's numbers.
struct Update {
  float learning_rate = 0;
  float gradient_scale = 1;  // gradient = gradient_scale * sum: one over the weight that was folded
  uint64_t number = 1;       // of this shard's updates, from 1 (the version after it)
  double progress = 1;       // of the run, 0 to 1; 1 where nothing is planned
};

// Immutable, thread-safe: what changes is the shard's.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  int slot_count() const { return slot_count_; }
  double weight_decay() const { return weight_decay_; }
  // Applies one update in a single pass over the arrays, which are a shard's or, in calls of their
  // own, a few thousand of its values at a time. REQUIRES: slots.size() == slot_count(), every span
  // as long as sum and apart from the others, update.number >= 1.
  virtual void Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots) const = 0;

 protected:
  explicit Optimizer(int slot_count = 0, double weight_decay = 0)
      : slot_count_(slot_count), weight_decay_(weight_decay) {}

 private:
  const int slot_count_;
  const double weight_decay_;
};

// Errors: InvalidArgument with the problems of SPEC.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
