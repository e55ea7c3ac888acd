#include "server/core/optimizer/adagrad.h"

#include "kernels/update_adagrad.h"

namespace thinwire {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerSpec& spec)
      : Optimizer(1, spec.weight_decay), epsilon_(static_cast<float>(spec.epsilon)) {}

  void Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    kernels::UpdateAdagrad({.gradient_scale = update.gradient_scale,
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
