#include "server/core/optimizer/optimizer.h"

#include <cstddef>
#include <iterator>

#include "common/base/status_macros.h"

namespace thinwire {

// Each factory is defined in the source file of its optimizer. REQUIRES: SPEC.Validate() reports no
// problem.
std::unique_ptr<const Optimizer> MakeSgd(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeMomentum(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAdam(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAdamW(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAdagrad(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeLion(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeLars(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeLamb(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeAverage(const OptimizerSpec& spec);
std::unique_ptr<const Optimizer> MakeSignSgd(const OptimizerSpec& spec);

namespace {

using Factory = std::unique_ptr<const Optimizer> (*)(const OptimizerSpec& spec);

// The optimizer factories, indexed by OptimizerKind.
constexpr Factory kFactories[] = {MakeSgd,   MakeMomentum, MakeMomentum, MakeAdam,
                                  MakeAdamW, MakeAdagrad,  MakeLion,     MakeLars,
                                  MakeLamb,  MakeAverage,  MakeSignSgd};
static_assert(std::size(kFactories) == std::size(kOptimizers));

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec) {
  RETURN_IF_ERROR(spec.Validate().ToStatus());
  return kFactories[static_cast<size_t>(spec.kind)](spec);
}

}  // namespace thinwire
