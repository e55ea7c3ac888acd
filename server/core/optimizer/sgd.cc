// Stochastic gradient descent (Robbins and Monro 1951), equivalent to torch.optim.SGD without
// momentum. It has no slots.
//
//   g = gradient_scale * sum + weight_decay * x
//   x = x - learning_rate * g
#include "kernels/update/update_sgd.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerSpec& spec) : Optimizer(spec, 0) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    return kernels::UpdateSgd({.gradient_scale = update.gradient_scale,
                               .weight_decay = static_cast<float>(weight_decay()),
                               .learning_rate = update.learning_rate},
                              sum, masters);
  }
};

}  // namespace

std::unique_ptr<const Optimizer> MakeSgd(const OptimizerSpec& spec) {
  return std::make_unique<Sgd>(spec);
}

}  // namespace thinwire
