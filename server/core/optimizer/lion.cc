// Lion. Slot 0: momentum m.
//
//   g = gradient_scale * sum
//   x = (1 - learning_rate * weight_decay) * x - learning_rate * sign(beta1 * m + (1 - beta1) * g)
//   m = beta2 * m + (1 - beta2) * g
//
// Algorithm 2 of Chen et al. 2023, Symbolic Discovery of Optimization Algorithms, whose betas are
// 0.9 and 0.99. Every value moves by the learning rate, so the rate must be 3 to 10 times smaller
// than with adamw.
#include "common/base/repeatable_math.h"
#include "kernels/update/update_lion.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Lion final : public Optimizer {
 public:
  explicit Lion(const OptimizerSpec& spec)
      : Optimizer(spec, 1), beta1_(spec.beta1), beta2_(spec.beta2) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    return kernels::UpdateLion({.gradient_scale = update.gradient_scale,
                                .beta1 = static_cast<float>(beta1_),
                                .one_minus_beta1 = static_cast<float>(1 - beta1_),
                                .beta2 = static_cast<float>(beta2_),
                                .one_minus_beta2 = static_cast<float>(1 - beta2_),
                                .learning_rate = update.learning_rate,
                                .shrink = FiniteFloat(1 - update.learning_rate * weight_decay())},
                               sum, masters, slots[0]);
  }

 private:
  const double beta1_;
  const double beta2_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeLion(const OptimizerSpec& spec) {
  return std::make_unique<Lion>(spec);
}

}  // namespace thinwire
