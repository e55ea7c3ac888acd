// An update that has entries for a few of a shard's values: slots advance and masters move there
// and nowhere else. The weight decay of the updates without an entry is made up for when one comes:
//
//   missed = number - 1 - last                                 of the value, 0 if it had the update
//   x      = (1 - learning_rate * weight_decay)^missed * x     before
//   then x and slots as the optimizer's formula has them;  last = number
//
// For a slot time passes with the entries of its value, as in LazyAdam of TensorFlow Addons and
// SparseAdam of PyTorch: an entry is a gradient that was summed up over the updates since the last
// one, and follows that one as a gradient follows another (docs/decisions/0047). Weight decay:
// Carpenter 2008, Lazy Sparse Stochastic Gradient Descent for Regularized Multinomial Logistic
// Regression. docs/optimizers.md has what it means for each optimizer.
//
// An update with an entry for every value has the bits of Optimizer::Apply. Thread-safe: touches
// nothing but its arguments.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_

#include <cstdint>
#include <span>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// A shard's values, all of them.
struct LazyArrays {
  std::span<float> masters;
  std::span<const std::span<float>> slots;
  // The number of the last update with an entry, modulo 2^32; begins at 0.
  std::span<uint32_t> last;
};

// One update of the values at INDICES, whose sums are SUMS. May be called several times for one
// update, for different indices. REQUIRES: as many sums as indices, which rise and are within the
// arrays; the arrays are as Optimizer::Apply wants them, `last` as long as they.
void ApplySparse(const Optimizer& optimizer, const Update& update,
                 std::span<const uint32_t> indices, std::span<const float> sums,
                 const LazyArrays& arrays);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_
