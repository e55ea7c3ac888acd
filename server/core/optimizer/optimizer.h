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
#include <string>
#include <string_view>
#include <utility>
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
  uint64_t number = 1;       // of this shard's updates, from 1 (the version after it)
};

// What an update does to a value without a gradient, where it only decays: it multiplies each slot
// by its factor, and the master by 1 - learning_rate * weight_decay.
struct Decays {
  std::vector<double> slots;  // from 0 to 1, one for each slot
  double weight_decay = 0;
};

// Immutable, thread-safe: what changes is the shard's.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  const Decays& decays() const { return decays_; }
  int slot_count() const { return static_cast<int>(decays_.slots.size()); }
  // Applies one update in a single pass over the arrays, which are a shard's or, in calls of their
  // own, a few thousand of its values at a time. REQUIRES: slots.size() == slot_count(), every span
  // as long as sum and apart from the others, update.number >= 1.
  virtual void Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots) const = 0;

 protected:
  explicit Optimizer(Decays decays = {}) : decays_(std::move(decays)) {}

 private:
  const Decays decays_;
};

// Errors: InvalidArgument for an unknown name (lists those there are and suggests a near one) or a
// number out of its range, also one that this optimizer does not use.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
