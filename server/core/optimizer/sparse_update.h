// ApplySparse applies an update that has entries for a few of a shard's values. Only the slots and
// masters of these values change. Weight decay is lazy: if a value had no entry in some earlier
// updates, its next entry first applies the weight decay of those updates:
//
//   missed = number - 1 - last     number of earlier updates without an entry since the last entry
//   x      = (1 - learning_rate * weight_decay)^missed * x
//   then apply the optimizer's formula to x and its slots;  last = number
//
// Slots change once per entry of their value, not once per update, as in LazyAdam of TensorFlow
// Addons and SparseAdam of PyTorch: an entry is a gradient summed over the updates since the
// previous entry, and the optimizer treats consecutive entries as consecutive gradients
// (docs/decisions/0047). Weight decay: Carpenter 2008, Lazy Sparse Stochastic Gradient Descent for
// Regularized Multinomial Logistic Regression. docs/optimizers.md explains the effect on each
// optimizer.
//
// An update with an entry for every value gives the same bits as Optimizer::Apply. Thread-safe:
// ApplySparse uses only its arguments.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_

#include <cstdint>
#include <span>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// The arrays of a whole shard with lazy slots.
struct LazyArrays {
  std::span<float> masters;
  std::span<const std::span<float>> slots;
  // For each value: the number of the last update that had an entry for this value, modulo 2^32.
  // Initially 0.
  std::span<uint32_t> last;
};

// Applies one update to the values at INDICES; SUMS[j] is the gradient sum of INDICES[j]. One
// update may be applied in several calls with disjoint indices. Returns whether a new master or
// slot has the magnitude of the largest finite float. REQUIRES: as many sums as indices; ascending
// indices within the arrays; masters, slots and last have the same length and meet the requirements
// of Optimizer::Apply; OPTIMIZER does not need whole tensors.
bool ApplySparse(const Optimizer& optimizer, const Update& update,
                 std::span<const uint32_t> indices, std::span<const float> sums,
                 const LazyArrays& arrays);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_SPARSE_UPDATE_H_
