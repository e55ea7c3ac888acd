// AdaGrad with one learning rate per value (Duchi, Hazan and Singer 2011, the diagonal form).
// Equivalent to torch.optim.Adagrad with lr_decay 0 and initial_accumulator_value 0. Slot 0: sum of
// squared gradients s.
//
//   g = gradient_scale * sum + weight_decay * x
//   s = s + g^2
//   x = x - learning_rate * g / (sqrt(s) + epsilon)
#include "kernels/update/update_adagrad.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerSpec& spec)
      : Optimizer(spec, 1), epsilon_(static_cast<float>(spec.epsilon)) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    return kernels::UpdateAdagrad({.gradient_scale = update.gradient_scale,
                                   .weight_decay = static_cast<float>(weight_decay()),
                                   .learning_rate = update.learning_rate,
                                   .epsilon = epsilon_},
                                  sum, masters, slots[0]);
  }

 private:
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeAdagrad(const OptimizerSpec& spec) {
  return std::make_unique<Adagrad>(spec);
}

}  // namespace thinwire
