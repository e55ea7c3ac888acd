// Optimizer updates masters with a folded gradient. One call updates an array of values.
//
//   name       slots   update of one value (rate: learning rate, x: master, g: gradient)
//   sgd        -       x -= rate g
//   momentum   u       u = momentum u + g;  x -= rate u
//   nesterov   u       u = momentum u + g;  x -= rate (g + momentum u)
//   adam       m v     m, v: decaying means of g and g^2;  x -= rate m / (sqrt(v) + epsilon)
//   adamw      m v     formula of adam, with weight decay applied to x instead of g
//   adagrad    s       s += g^2;  x -= rate g / (sqrt(s) + epsilon)
//   lion       m       x -= rate sign(mean of m and g);  m: decaying mean of g
//   lars       u       formula of momentum, with a rate per tensor
//   lamb       m v     formula of adamw, with a rate per tensor
//   average    -       x = g
//   sign_sgd   -       x -= rate sign(g)
//
// docs/optimizers.md lists the complete formulas; sparse_update.h applies updates that have entries
// for only a few values. Slots are an optimizer's state per value: flat arrays of the shard's
// length, owned by the shard and initialized to zero. Results are bit-identical on every machine
// and do not depend on how a shard's values are divided among calls, except that an optimizer with
// reads_norms() needs one call per tensor (docs/decisions/0109) or, for a tensor that several shards
// share, the sums of Measure() over all shards (docs/decisions/0225). Masters and slots stay finite
// for every accepted gradient: a result beyond the largest finite float becomes that float
// (docs/decisions/0068).
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "common/spec/optimizer_spec.h"
#include "server/core/optimizer/square_sums.h"

namespace thinwire {

// The scalars of one update.
struct Update {
  float learning_rate = 0;
  float gradient_scale = 1;  // 1 / weight of all summed pushes; gradient = gradient_scale * sum
  uint64_t number = 1;       // 1 for the shard's first update; equals the version after the update
  double progress = 1;       // completed fraction of the run; 1 if the run has no planned length
  // The sums of Optimizer::Measure over all parts of the tensor; nullopt: the arrays of the update
  // are the whole tensor, and nobody has measured them.
  std::optional<SquareSums> measured;
};

// Immutable and thread-safe: the shard's arrays contain all state.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  int slot_count() const { return slot_count_; }
  double weight_decay() const { return weight_decay_; }
  // Returns the decay of the moving average of the masters, which the Updater keeps; 0: no average.
  double average_decay() const { return average_decay_; }
  // Returns whether the update of a value depends on norms of its tensor.
  bool reads_norms() const { return reads_norms_; }
  // Returns whether the masters are the mean gradient of the last round: 0 after a round without
  // gradients.
  bool holds_average() const { return holds_average_; }
  // The first half of an update of a part of a tensor: moves the slots as far as they do not depend
  // on norms, and returns the sums of squares of the masters and of the direction of the update.
  // Apply() is the second half; its `measured` has the sums over all parts. REQUIRES: as Apply();
  // reads_norms(); `measured` is not set.
  virtual SquareSums Measure(const Update& /*update*/, std::span<const float> /*sum*/,
                             std::span<const float> /*masters*/,
                             std::span<const std::span<float>> /*slots*/) const {
    return {};
  }
  // Applies one update to the arrays, which cover a shard or a part of a shard. If reads_norms(),
  // they cover exactly one tensor, or the part of a tensor that Measure() has read.
  // Returns whether a new master or slot has the magnitude of the largest finite float. REQUIRES:
  // slots.size() == slot_count(); all spans have the same length and do not overlap; all values are
  // finite; 0 <= update.gradient_scale <= 1; update.number >= 1.
  virtual bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots) const = 0;

 protected:
  explicit Optimizer(const OptimizerSpec& spec = {}, int slot_count = 0)
      : slot_count_(slot_count),
        weight_decay_(spec.weight_decay),
        average_decay_(spec.parameter_average),
        reads_norms_(Traits(spec.kind).reads_norms),
        holds_average_(Traits(spec.kind).holds_average) {}

 private:
  const int slot_count_;
  const double weight_decay_;
  const double average_decay_;
  const bool reads_norms_;
  const bool holds_average_;
};

// Returns NORM / OTHER, or 1 if one of them is 0.
inline double NormRatio(double norm, double other) {
  return norm == 0 || other == 0 ? 1 : norm / other;
}

// Returns the optimizer that SPEC describes. Errors: InvalidArgument with the problems of SPEC.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_H_
