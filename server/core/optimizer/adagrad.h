// AdaGrad with a rate for every value (Duchi, Hazan and Singer 2011, the diagonal form), as
// torch.optim.Adagrad with lr_decay 0 and initial_accumulator_value 0. Slot 0: sum of squares s.
//
//   g = gradient_scale * sum + weight_decay * x
//   s = s + g^2
//   x = x - learning_rate * g / (sqrt(s) + epsilon)
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_ADAGRAD_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_ADAGRAD_H_

#include <memory>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// REQUIRES: the numbers of SPEC are in their ranges (MakeOptimizer checks them).
std::unique_ptr<const Optimizer> MakeAdagrad(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_ADAGRAD_H_
