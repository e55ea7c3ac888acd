// Optimizer turns one folded gradient into new masters. One call handles many values.
//
//   name       slots   an update (rate: learning rate, x: master, g: its gradient)
//   sgd        -       x -= rate g
//   momentum   u       u = momentum u + g;  x -= rate u
//   nesterov   u       u = momentum u + g;  x -= rate (g + momentum u)
//   adam       m v     m, v: decaying means of g and g^2;  x -= rate m / (sqrt(v) + epsilon)
//   adamw      m v     as adam, with weight decay applied to x and not to g
//   adagrad    s       s += g^2;  x -= rate g / (sqrt(s) + epsilon)
//
// docs/optimizers.md has the complete formulas; sparse_update.h handles updates with entries for a
// few values only. Slots are an optimizer's state per value: flat arrays with the shard's length
// that the shard owns and that begin at zero. The same calls give the same bits on every machine,
// however a shard's values are divided into calls.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/spec/optimizer_spec.h"

namespace thinwire {

// The scalars of one update.
struct Update {
  float learning_rate = 0;
  float gradient_scale = 1;  // gradient = gradient_scale * sum; 1 / the weight of the sum
  uint64_t number = 1;  // counts the shard's updates from 1; equals the version after the update
  double progress = 1;  // the completed fraction of the run, 0 to 1; 1 without a plan
};

// Immutable and thread-safe: all state is in the shard's arrays.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  int slot_count() const { return slot_count_; }
  double weight_decay() const { return weight_decay_; }
  // Applies one update in a single pass over the arrays. They cover a whole shard or a part of it.
  // REQUIRES: slots.size() == slot_count(); all spans have the same length and do not overlap;
  // update.number >= 1.
  virtual void Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots) const = 0;

 protected:
  explicit Optimizer(int slot_count = 0, double weight_decay = 0)
      : slot_count_(slot_count), weight_decay_(weight_decay) {}

 private:
  const int slot_count_;
  const double weight_decay_;
};

// Returns the optimizer that SPEC describes. Errors: InvalidArgument with the problems of SPEC.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
