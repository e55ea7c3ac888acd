// Stochastic gradient descent (Robbins and Monro 1951), as torch.optim.SGD without momentum. No
// slot.
//
//   g = gradient_scale * sum + weight_decay * x
//   x = x - learning_rate * g
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_SGD_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_SGD_H_

#include <memory>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// REQUIRES: the numbers of SPEC are in their ranges (MakeOptimizer checks them).
std::unique_ptr<const Optimizer> MakeSgd(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_SGD_H_
