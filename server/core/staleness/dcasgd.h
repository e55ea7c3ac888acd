// The staleness policy `dcasgd`: delay compensation of Zheng et al. 2017 (Asynchronous Stochastic
// Gradient Descent with Delay Compensation, arXiv 1609.08326). It estimates the gradient at the
// parameters NOW from a gradient g at older parameters THEN:
//
//   compensated = g + lambda * g * g * (now - then)
//
// The squares stand for the diagonal of the Hessian matrix. In the adaptive variant, DC-ASGD-a
// (section 5 of the paper), MeanSquares gives every value a lambda of its own:
//
//   mean square = decay * mean square + (1 - decay) * g * g      for every accepted gradient
//   lambda      = LAMBDA / sqrt(mean square + 1e-7)              of the new mean square
#ifndef THINWIRE_SERVER_CORE_STALENESS_DCASGD_H_
#define THINWIRE_SERVER_CORE_STALENESS_DCASGD_H_

#include <cstddef>
#include <memory_resource>
#include <span>

#include "absl/status/status.h"
#include "common/codec/payload.h"
#include "common/memory/byte_chain.h"
#include "common/memory/float_array.h"

namespace thinwire {

// Keeps the mean square of every value of a shard, which is 0 at first. Lives on its shard's strand.
class MeanSquares {
 public:
  // With a DECAY of 0 there are no mean squares. MEMORY must outlive this object. REQUIRES: 0 <=
  // DECAY < 1.
  MeanSquares(size_t value_count, double decay,
              std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Adds the squares of GRADIENT. If it is sparse, the mean squares of values without an entry
  // stay. REQUIRES: its values are finite; it has value_count values.
  void Add(const CheckedPayload& gradient);
  // Returns the factor of LAMBDA for value number I: 1 without mean squares.
  double FactorOf(size_t i) const;
  std::span<const float> values() const { return values_; }  // none with a decay of 0

  ByteChain Save() const;
  // Continues from SNAPSHOT, the result of Save(). Errors: InvalidArgument if it has another size;
  // the mean squares then stay.
  absl::Status Restore(const ByteChain& snapshot);

 private:
  const double decay_;
  FloatArray values_;
};

// Returns the compensated GRADIENT, with values in fp32 and magnitudes up to LARGEST. A sparse
// gradient stays sparse and keeps its entries, because other values are not compensated.
// REQUIRES: NOW and THEN are finite and have gradient.count() values; the values of GRADIENT are
// finite, and SQUARES has them.
CheckedPayload Compensated(const CheckedPayload& gradient, std::span<const float> now,
                           std::span<const float> then, double lambda, const MeanSquares& squares,
                           float largest);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_STALENESS_DCASGD_H_
