// Gradient descent with momentum, equivalent to torch.optim.SGD with dampening 0: the velocity does
// not include the learning rate. Slot 0: velocity u.
//
//   g = gradient_scale * sum + weight_decay * x
//   u = momentum * u + g
//   x = x - learning_rate * u                      momentum
//   x = x - learning_rate * (g + momentum * u)     nesterov
//
// momentum is the method of Polyak 1964. nesterov is the method of Nesterov 1983 in the form of
// Sutskever et al. 2013, section 2.
#include "kernels/update/update_momentum.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Momentum final : public Optimizer {
 public:
  explicit Momentum(const OptimizerSpec& spec)
      : Optimizer(spec, 1),
        momentum_(static_cast<float>(spec.momentum)),
        nesterov_(spec.kind == OptimizerKind::kNesterov) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    return kernels::UpdateMomentum({.gradient_scale = update.gradient_scale,
                                    .weight_decay = static_cast<float>(weight_decay()),
                                    .learning_rate = update.learning_rate,
                                    .momentum = momentum_,
                                    .nesterov = nesterov_},
                                   sum, masters, slots[0]);
  }

 private:
  const float momentum_;
  const bool nesterov_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeMomentum(const OptimizerSpec& spec) {
  return std::make_unique<Momentum>(spec);
}

}  // namespace thinwire
