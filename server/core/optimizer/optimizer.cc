#include "server/core/optimizer/optimizer.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/did_you_mean.h"

namespace thinwire {

// Each is defined in the source that implements the optimizer. REQUIRES: the numbers of SPEC are
// within their ranges.
std::unique_ptr<const Optimizer> MakeSgd(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeMomentum(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAdam(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAdamW(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAdagrad(const OptimizerSpec& spec);

namespace {

// Written so that a NaN is out of every range.
absl::Status CheckDecay(const char* field, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": want a number from 0 to below 1, got ", value));
}

absl::Status CheckNumbers(const OptimizerSpec& spec) {
  if (auto status = CheckDecay("momentum", spec.momentum); !status.ok()) return status;
  if (auto status = CheckDecay("beta1", spec.beta1); !status.ok()) return status;
  if (auto status = CheckDecay("beta2", spec.beta2); !status.ok()) return status;
  using Float = std::numeric_limits<float>;
  // Not zero: a value that never had a gradient would become 0 / 0.
  if (!(spec.epsilon >= Float::min() && spec.epsilon <= Float::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("epsilon: want a number above 0 that a float holds, got ", spec.epsilon));
  }
  if (!(spec.weight_decay >= 0 && spec.weight_decay <= Float::max())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weight_decay: want a number of at least 0 that a float holds, got ", spec.weight_decay));
  }
  return absl::OkStatus();
}

// One row per optimizer.
struct Maker {
  std::string_view name;
  std::unique_ptr<const Optimizer> (*make)(const OptimizerSpec& spec);
};

constexpr Maker kMakers[] = {{"sgd", MakeSgd},           {"momentum", MakeMomentum},
                             {"nesterov", MakeMomentum}, {"adam", MakeAdam},
                             {"adamw", MakeAdamW},       {"adagrad", MakeAdagrad}};

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec) {
  std::vector<std::string_view> names;
  for (const Maker& maker : kMakers) {
    names.push_back(maker.name);
    if (maker.name != spec.name) continue;
    if (auto status = CheckNumbers(spec); !status.ok()) return status;
    return maker.make(spec);
  }
  return UnknownWord("optimizer", spec.name, names);
}

}  // namespace thinwire
