// ApplySparse applies an update that has entries for a few of a shard's values. Slots and masters
// change at these values only. The weight decay of earlier updates without an entry is applied when
// the next entry arrives:
//
//   missed = number - 1 - last     updates since the last entry; 0 if the last update had one
//   x      = (1 - learning_rate * weight_decay)^missed * x
//   then x and slots follow the optimizer's formula;  last = number
//
// Slots count the entries of their value, not the updates, as in LazyAdam of TensorFlow Addons and
// SparseAdam of PyTorch: an entry is a gradient summed over the updates since the last entry, and
// follows it like one gradient follows another (docs/decisions/0047). Weight decay: Carpenter 2008,
// Lazy Sparse Stochastic Gradient Descent for Regularized Multinomial Logistic Regression.
// docs/optimizers.md explains the effect on each optimizer.
//
// An update with an entry for every value gives the bits of Optimizer::Apply. Thread-safe: uses
// only its arguments.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_

#include <cstdint>
#include <span>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// The arrays of a whole shard.
struct LazyArrays {
  std::span<float> masters;
  std::span<const std::span<float>> slots;
  // For each value the number of the last update with an entry for it, modulo 2^32; begins at 0.
  std::span<uint32_t> last;
};

// Applies one update to the values at INDICES with the sums SUMS. One update may be applied in
// several calls with different indices. REQUIRES: as many sums as indices; rising indices within
// the arrays; masters, slots and last have the same length and meet the requirements of
// Optimizer::Apply.
void ApplySparse(const Optimizer& optimizer, const Update& update,
                 std::span<const uint32_t> indices, std::span<const float> sums,
                 const LazyArrays& arrays);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_
