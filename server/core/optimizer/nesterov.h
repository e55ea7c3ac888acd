// Nesterov's accelerated gradient (Nesterov 1983; in the form of Sutskever et al. 2013, section 2),
// as torch.optim.SGD with nesterov: x stands where the next gradient is taken. Slot 0: velocity u.
//
//   g = gradient_scale * sum + weight_decay * x
//   u = momentum * u + g
//   x = x - learning_rate * (g + momentum * u)
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_NESTEROV_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_NESTEROV_H_

#include <memory>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// REQUIRES: the numbers of SPEC are in their ranges (MakeOptimizer checks them).
std::unique_ptr<const Optimizer> MakeNesterov(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_NESTEROV_H_
