#include "server/core/optimizer/adam.h"

#include "kernels/update_adam.h"
#include "server/core/optimizer/adam_moments.h"

namespace thinwire {
namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(const OptimizerSpec& spec) : Optimizer(2, spec.weight_decay), moments_(spec) {}

  void Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    kernels::AdamStep step = moments_.StepFor(update);
    step.weight_decay = static_cast<float>(weight_decay());
    kernels::UpdateAdam(step, sum, masters, slots[0], slots[1]);
  }

 private:
  const AdamMoments moments_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeAdam(const OptimizerSpec& spec) {
  return std::make_unique<Adam>(spec);
}

}  // namespace thinwire
