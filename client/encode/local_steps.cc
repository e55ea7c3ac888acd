#include "client/encode/local_steps.h"

#include <algorithm>

#include "common/base/repeatable_math.h"
#include "common/model/adam_step.h"
#include "kernels/arithmetic.h"
#include "kernels/update/update_adam.h"
#include "kernels/update/update_momentum.h"
#include "kernels/update/update_sgd.h"

namespace thinwire::client {
namespace {

size_t SlotCount(LocalOptimizerKind kind) {
  switch (kind) {
    case LocalOptimizerKind::kSgd:
      return 0;
    case LocalOptimizerKind::kMomentum:
      return 1;
    case LocalOptimizerKind::kAdamW:
      return 2;
  }
  return 0;
}

// Returns the settings of update number NUMBER, from 1, with the constants of torch.optim.AdamW.
kernels::AdamStep AdamWStep(const LocalStepsSpec& spec, uint64_t number) {
  kernels::AdamStep step = AdamConstants().Step(spec.learning_rate, number);
  step.shrink = FiniteFloat(1 - spec.learning_rate * spec.weight_decay);
  return step;
}

}  // namespace

LocalSteps::LocalSteps(const LocalStepsSpec& spec, std::span<const TensorShape> tensors)
    : spec_(spec) {
  size_t value_count = 0;
  for (const TensorShape& tensor : tensors) value_count += tensor.value_count();
  state_.slots.assign(SlotCount(spec.optimizer), std::vector<float>(value_count));
}

void LocalSteps::Begin(Tensors parameters) {
  start_.clear();
  for (const std::span<float> tensor : parameters) {
    start_.insert(start_.end(), tensor.begin(), tensor.end());
  }
}

bool LocalSteps::Apply(Tensors parameters, Tensors gradient, float scale) {
  for (const std::span<float> tensor : gradient) {
    if (!kernels::ScaleFinite(1 / scale, tensor, tensor)) return false;
  }
  ++state_.update_count;
  size_t offset = 0;
  for (size_t t = 0; t < parameters.size(); ++t) {
    Update(gradient[t], parameters[t], offset);
    offset += parameters[t].size();
  }
  return true;
}

void LocalSteps::Update(std::span<const float> gradient, std::span<float> parameters,
                        size_t offset) {
  const auto rate = static_cast<float>(spec_.learning_rate);
  const auto decay = static_cast<float>(spec_.weight_decay);
  const auto slot = [&](size_t i) {
    return std::span(state_.slots[i]).subspan(offset, parameters.size());
  };
  switch (spec_.optimizer) {
    case LocalOptimizerKind::kSgd:
      kernels::UpdateSgd({.weight_decay = decay, .learning_rate = rate}, gradient, parameters);
      break;
    case LocalOptimizerKind::kMomentum:
      kernels::UpdateMomentum({.weight_decay = decay,
                               .learning_rate = rate,
                               .momentum = static_cast<float>(spec_.momentum)},
                              gradient, parameters, slot(0));
      break;
    case LocalOptimizerKind::kAdamW:
      kernels::UpdateAdam(AdamWStep(spec_, state_.update_count), gradient, parameters, slot(0),
                          slot(1));
      break;
  }
}

void LocalSteps::Finish(Tensors parameters, Tensors gradient) {
  size_t offset = 0;
  for (size_t t = 0; t < parameters.size(); ++t) {
    for (size_t i = 0; i < parameters[t].size(); ++i) {
      const float start = start_[offset + i];
      gradient[t][i] = start - parameters[t][i];
      parameters[t][i] = start;
    }
    offset += parameters[t].size();
  }
}

}  // namespace thinwire::client
