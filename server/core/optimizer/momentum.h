// Gradient descent with momentum, as torch.optim.SGD with dampening 0: the learning rate stays
// outside the velocity. Slot 0: velocity u.
//
//   g = gradient_scale * sum + weight_decay * x
//   u = momentum * u + g
//   x = x - learning_rate * u                      momentum (Polyak 1964)
//   x = x - learning_rate * (g + momentum * u)     nesterov (Nesterov 1983; in the form of
//   Sutskever
//                                                  et al. 2013, section 2)
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_MOMENTUM_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_MOMENTUM_H_

#include <memory>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// The one that SPEC names. REQUIRES: its numbers are in their ranges (MakeOptimizer checks them).
std::unique_ptr<const Optimizer> MakeMomentum(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_MOMENTUM_H_
