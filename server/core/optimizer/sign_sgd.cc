// SignSGD (Bernstein et al. 2018, signSGD: Compressed Optimisation for Non-Convex Problems). It has
// no slots.
//
//   g = gradient_scale * sum
//   x = (1 - learning_rate * weight_decay) * x - learning_rate * sign(g)
//
// With a momentum at the workers it is the update of DeMo (Peng, Quesnelle and Kingma 2024,
// algorithm 1), which decays weights in the same way.
#include "common/base/repeatable_math.h"
#include "kernels/update/update_sign_sgd.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class SignSgd final : public Optimizer {
 public:
  explicit SignSgd(const OptimizerSpec& spec) : Optimizer(spec, 0) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    return kernels::UpdateSignSgd(
        {.gradient_scale = update.gradient_scale,
         .learning_rate = update.learning_rate,
         .shrink = FiniteFloat(1 - update.learning_rate * weight_decay())},
        sum, masters);
  }
};

}  // namespace

std::unique_ptr<const Optimizer> MakeSignSgd(const OptimizerSpec& spec) {
  return std::make_unique<SignSgd>(spec);
}

}  // namespace thinwire
