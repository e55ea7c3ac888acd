// Adam and AdamW. Slot 0: first moment m. Slot 1: second moment v. t is the number of the update,
// from 1.
//
//   adam    g = gradient_scale * sum + weight_decay * x
//   adamw   g = gradient_scale * sum
//           x = (1 - learning_rate * weight_decay) * x
//   both    m = beta1 * m + (1 - beta1) * g
//           v = beta2 * v + (1 - beta2) * g^2
//           x = x - learning_rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// adam is algorithm 1 of Kingma and Ba 2015, as in torch.optim.Adam. adamw is algorithm 2 of
// Loshchilov and Hutter 2019, as in torch.optim.AdamW.
#include "common/base/repeatable_math.h"
#include "common/model/adam_step.h"
#include "kernels/update/update_adam.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Adam final : public Optimizer {
 public:
  // With DECOUPLED_DECAY (AdamW), weight decay multiplies the masters directly and does not change
  // the moments.
  Adam(const OptimizerSpec& spec, bool decoupled_decay)
      : Optimizer(spec, 2),
        constants_{spec.beta1, spec.beta2, spec.epsilon},
        decoupled_decay_(decoupled_decay) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    kernels::AdamStep step = constants_.Step(update.learning_rate, update.number);
    step.gradient_scale = update.gradient_scale;
    if (decoupled_decay_) {
      step.shrink = FiniteFloat(1 - update.learning_rate * weight_decay());
    } else {
      step.weight_decay = static_cast<float>(weight_decay());
    }
    return kernels::UpdateAdam(step, sum, masters, slots[0], slots[1]);
  }

 private:
  const AdamConstants constants_;
  const bool decoupled_decay_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeAdam(const OptimizerSpec& spec) {
  return std::make_unique<Adam>(spec, false);
}

std::unique_ptr<const Optimizer> MakeAdamW(const OptimizerSpec& spec) {
  return std::make_unique<Adam>(spec, true);
}

}  // namespace thinwire
