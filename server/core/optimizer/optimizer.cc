#include "server/core/optimizer/optimizer.h"

#include <cstddef>
#include <iterator>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "server/core/optimizer/adagrad.h"
#include "server/core/optimizer/adam.h"
#include "server/core/optimizer/adamw.h"
#include "server/core/optimizer/momentum.h"
#include "server/core/optimizer/sgd.h"

namespace thinwire {
namespace {

using Factory = std::unique_ptr<const Optimizer> (*)(const OptimizerSpec& spec);

// In the order of OptimizerKind.
constexpr Factory kFactories[] = {MakeSgd,  MakeMomentum, MakeMomentum,
                                  MakeAdam, MakeAdamW,    MakeAdagrad};
static_assert(std::size(kFactories) == std::size(kOptimizers));

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const OptimizerSpec& spec) {
  RETURN_IF_ERROR(spec.Validate().ToStatus());
  return kFactories[static_cast<size_t>(spec.kind)](spec);
}

}  // namespace thinwire
