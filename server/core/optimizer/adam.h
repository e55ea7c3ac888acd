// Adam (Kingma and Ba 2015, algorithm 1), as torch.optim.Adam: weight decay goes through the
// moments. Slot 0: first moment m. Slot 1: second moment v. t is the update's number.
//
//   g = gradient_scale * sum + weight_decay * x
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2
//   x = x - learning_rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_ADAM_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_ADAM_H_

#include <memory>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// REQUIRES: the numbers of SPEC are in their ranges (MakeOptimizer checks them).
std::unique_ptr<const Optimizer> MakeAdam(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_ADAM_H_
