// The staleness policy `dcasgd`: delay compensation of Zheng et al. 2017 (Asynchronous Stochastic
// Gradient Descent with Delay Compensation, arXiv 1609.08326). It estimates the gradient at the
// parameters NOW from a gradient g at older parameters THEN:
//
//   compensated = g + lambda * g * g * (now - then)
//
// The squares stand for the diagonal of the Hessian matrix. A pure function.
#ifndef THINWIRE_SERVER_CORE_STALENESS_DCASGD_H_
#define THINWIRE_SERVER_CORE_STALENESS_DCASGD_H_

#include <span>

#include "common/codec/payload.h"

namespace thinwire {

// Returns the compensated GRADIENT, with values in fp32 and magnitudes up to LARGEST. A sparse
// gradient stays sparse and keeps its entries, because other values are not compensated.
// REQUIRES: NOW and THEN are finite and have gradient.count() values; the values of GRADIENT are
// finite.
CheckedPayload Compensated(const CheckedPayload& gradient, std::span<const float> now,
                           std::span<const float> then, double lambda, float largest);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_STALENESS_DCASGD_H_
