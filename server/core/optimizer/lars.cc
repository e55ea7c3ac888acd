// LARS: momentum with a learning rate per tensor. Slot 0: velocity u, which includes the learning
// rate. ||x|| is the L2 norm of all values of the tensor.
//
//   g     = gradient_scale * sum
//   trust = trust_coefficient * ||x|| / (||g|| + weight_decay * ||x||)
//   u     = momentum * u + learning_rate * trust * (g + weight_decay * x)
//   x     = x - u
//
// Algorithm 1 of You, Gitman and Ginsburg 2017, Large Batch Training of Convolutional Networks. If
// a norm of the fraction is 0, the fraction counts as 1: a tensor that starts at 0 could not move
// otherwise.
#include <cmath>

#include "common/base/repeatable_math.h"
#include "kernels/reductions.h"
#include "kernels/update/update_momentum.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Lars final : public Optimizer {
 public:
  explicit Lars(const OptimizerSpec& spec)
      : Optimizer(spec, 1),
        momentum_(static_cast<float>(spec.momentum)),
        trust_coefficient_(spec.trust_coefficient) {}

  SquareSums Measure(const Update& update, std::span<const float> sum,
                     std::span<const float> masters,
                     std::span<const std::span<float>> /*slots*/) const override {
    return {.update = kernels::SumOfSquares(sum, update.gradient_scale),
            .masters = kernels::SumOfSquares(masters)};
  }

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    const SquareSums squares =
        update.measured.has_value() ? *update.measured : Measure(update, sum, masters, slots);
    const double norm = std::sqrt(squares.masters);
    const double gradient_norm = std::sqrt(squares.update);
    const double trust =
        trust_coefficient_ * NormRatio(norm, gradient_norm + weight_decay() * norm);
    return kernels::UpdateMomentum({.gradient_scale = update.gradient_scale,
                                    .weight_decay = static_cast<float>(weight_decay()),
                                    .factor = FiniteFloat(update.learning_rate * trust),
                                    .learning_rate = 1,
                                    .momentum = momentum_},
                                   sum, masters, slots[0]);
  }

 private:
  const float momentum_;
  const double trust_coefficient_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeLars(const OptimizerSpec& spec) {
  return std::make_unique<Lars>(spec);
}

}  // namespace thinwire
