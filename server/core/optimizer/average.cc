// The mean gradient of the last round, for workers that update their parameters themselves. It has
// no slots, and reads neither the learning rate nor weight_decay.
//
//   x = gradient_scale * sum
#include <algorithm>

#include "kernels/update/update_sgd.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {
namespace {

class Average final : public Optimizer {
 public:
  explicit Average(const OptimizerSpec& spec) : Optimizer(spec, 0) {}

  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override {
    std::ranges::fill(masters, 0.0f);
    return kernels::UpdateSgd({.gradient_scale = update.gradient_scale, .learning_rate = -1}, sum,
                              masters);
  }
};

}  // namespace

std::unique_ptr<const Optimizer> MakeAverage(const OptimizerSpec& spec) {
  return std::make_unique<Average>(spec);
}

}  // namespace thinwire
