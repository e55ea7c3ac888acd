// AdamW (Loshchilov and Hutter 2019, algorithm 2), as torch.optim.AdamW: Adam whose weight decay
// shrinks the masters and leaves the moments alone. Slot 0: first moment m. Slot 1: second moment
// v. t is the update's number.
//
//   g = gradient_scale * sum
//   x = (1 - learning_rate * weight_decay) * x
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2
//   x = x - learning_rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_ADAMW_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_ADAMW_H_

#include <memory>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// REQUIRES: the numbers of SPEC are in their ranges (MakeOptimizer checks them).
std::unique_ptr<const Optimizer> MakeAdamW(const OptimizerSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_ADAMW_H_
