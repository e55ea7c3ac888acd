#include "config/parts/optimization.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

using Schedule = Optimization::Schedule;

// Returns true if the job or a parameter group has an optimizer that reads a setting.
bool AnOptimizer(const JobConfig& config, bool OptimizerTraits::*uses) {
  if (kOptimizers[config.optimization().optimizer()].*uses) return true;
  return std::ranges::any_of(config.parameter_group(), [uses](const ParameterGroup& group) {
    return group.has_optimizer() && kOptimizers[group.optimizer()].*uses;
  });
}

// Returns a text that lists the optimizers that read a setting. Example: "optimizer: momentum or
// nesterov".
std::string OptimizersWith(bool OptimizerTraits::*uses) {
  std::vector<std::string> names;
  for (const OptimizerTraits& optimizer : kOptimizers) {
    if (optimizer.*uses) names.emplace_back(optimizer.name);
  }
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat("optimizer: ", absl::StrJoin(names, ", "), names.empty() ? "" : " or ", last);
}

}  // namespace

OptimizerSpec OptimizerSpecOf(const Optimization& o) {
  return {.kind = static_cast<OptimizerKind>(o.optimizer()),
          .momentum = o.momentum(),
          .beta1 = o.beta1(),
          .beta2 = o.beta2(),
          .epsilon = o.epsilon(),
          .weight_decay = o.weight_decay(),
          .trust_coefficient = o.trust_coefficient(),
          .parameter_average = o.parameter_average()};
}

ScheduleSpec ScheduleSpecOf(const Optimization& o) {
  return {.kind = static_cast<ScheduleKind>(o.schedule()),
          .learning_rate = o.learning_rate(),
          .warmup = o.warmup(),
          .decay_at = {o.decay_at().begin(), o.decay_at().end()},
          .decay_factor = o.decay_factor(),
          .power = o.power(),
          .growth = {.largest_batch = o.largest_batch(), .ratio = o.growth_ratio()}};
}

std::vector<Condition> OptimizationConditions() {
  return {
      {{"learning_rate", "weight_decay", "schedule", "warmup", "parameter_average", "lazy_slots"},
       [](const JobConfig& c) { return !kOptimizers[c.optimization().optimizer()].holds_average; },
       "an optimizer other than average",
       {"optimizer"}},
      {{"momentum"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_momentum); },
       OptimizersWith(&OptimizerTraits::uses_momentum),
       {"optimizer"}},
      {{"beta1", "beta2"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_betas); },
       OptimizersWith(&OptimizerTraits::uses_betas),
       {"optimizer"}},
      {{"epsilon"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_epsilon); },
       OptimizersWith(&OptimizerTraits::uses_epsilon),
       {"optimizer"}},
      {{"trust_coefficient"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_trust_coefficient); },
       OptimizersWith(&OptimizerTraits::uses_trust_coefficient),
       {"optimizer"}},
      {{"decay_at", "decay_factor"},
       [](const JobConfig& c) { return c.optimization().schedule() == Schedule::step; },
       "schedule: step",
       {"schedule"}},
      {{"power"},
       [](const JobConfig& c) { return c.optimization().schedule() == Schedule::polynomial; },
       "schedule: polynomial",
       {"schedule"}},
      {{"largest_batch", "growth_ratio"},
       [](const JobConfig& c) { return c.optimization().schedule() == Schedule::noise_scale; },
       "schedule: noise_scale",
       {"schedule"}},
      {{"selection_density", "selection_rest"},
       Selects,
       "gradient_selection: gtopk",
       {"gradient_selection"}},
  };
}

bool Selects(const JobConfig& config) {
  return config.optimization().gradient_selection() == Optimization::GradientSelection::gtopk;
}

}  // namespace thinwire
