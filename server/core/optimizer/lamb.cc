// LAMB: adamw with a learning rate per tensor. Slot 0: first moment m. Slot 1: second moment v. t
// is the number of the update, from 1. ||x|| is the L2 norm of all values of the tensor.
//
//   g = gradient_scale * sum
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2
//   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * x
//   x = x - learning_rate * ||x|| / ||r|| * r
//
// Algorithm 2 of You et al. 2020, Large Batch Optimization for Deep Learning, with the identity as
// phi. If a norm of the fraction is 0, the fraction counts as 1: a tensor that starts at 0 could
// not move otherwise.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "common/base/repeatable_math.h"
#include "common/model/adam_step.h"
#include "kernels/reductions.h"
#include "kernels/update/update_adam.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

// Number of values whose directions are computed together. They fit in the L1 cache.
constexpr size_t kBlock = 2048;

class Lamb final : public Optimizer {
 public:
  explicit Lamb(const OptimizerSpec& spec)
      : Optimizer(spec, 2), constants_{spec.beta1, spec.beta2, spec.epsilon} {}

  SquareSums Measure(const Update& update, std::span<const float> sum,
                     std::span<const float> masters,
                     std::span<const std::span<float>> slots) const override {
    // The kernel of adam computes shrink * x - step_size * m / (...). With the learning rate -1 and
    // this factor, the result is the direction r.
    kernels::AdamStep step = constants_.Step(-1, update.number);
    step.gradient_scale = update.gradient_scale;
    step.shrink = static_cast<float>(weight_decay());
    const double masters_squares = kernels::SumOfSquares(masters);
    return {.update = UpdateMoments(step, sum, masters, slots), .masters = masters_squares};
  }

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    const SquareSums squares =
        update.measured.has_value() ? *update.measured : Measure(update, sum, masters, slots);
    const double rate =
        update.learning_rate * NormRatio(std::sqrt(squares.masters), std::sqrt(squares.update));
    // This pass updates the masters and leaves the moments unchanged.
    kernels::AdamStep step = constants_.Step(-1, update.number);
    step.gradient_scale = update.gradient_scale;
    step.beta1 = step.beta2 = 1;
    step.one_minus_beta1 = step.one_minus_beta2 = 0;
    step.shrink = FiniteFloat(1 - rate * weight_decay());
    step.step_size = FiniteFloat(rate / constants_.RateCorrection(update.number));
    return kernels::UpdateAdam(step, sum, masters, slots[0], slots[1]);
  }

 private:
  // Updates both moments and returns the sum of squares of the direction. The order of its
  // additions is fixed.
  static double UpdateMoments(const kernels::AdamStep& step, std::span<const float> sum,
                              std::span<const float> masters,
                              std::span<const std::span<float>> slots) {
    std::array<float, kBlock> directions;
    double squares = 0;
    for (size_t first = 0; first < sum.size(); first += kBlock) {
      const size_t count = std::min(kBlock, sum.size() - first);
      const auto block = std::span(directions).first(count);
      const std::span<const float> old = masters.subspan(first, count);
      std::copy(old.begin(), old.end(), block.begin());
      kernels::UpdateAdam(step, sum.subspan(first, count), block, slots[0].subspan(first, count),
                          slots[1].subspan(first, count));
      squares += kernels::SumOfSquares(block);
    }
    return squares;
  }

  const AdamConstants constants_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeLamb(const OptimizerSpec& spec) {
  return std::make_unique<Lamb>(spec);
}

}  // namespace thinwire
