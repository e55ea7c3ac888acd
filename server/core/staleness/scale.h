// The staleness policy `scale`: a gradient with staleness t is multiplied with 1 / max(1, t). For
// plain gradient descent this equals the learning rate a / t of Zhang et al. 2016 (Staleness-aware
// Async-SGD, arXiv 1511.05950). A pure function.
#ifndef THINWIRE_SERVER_CORE_STALENESS_SCALE_H_
#define THINWIRE_SERVER_CORE_STALENESS_SCALE_H_

#include <algorithm>
#include <cstdint>

#include "common/spec/staleness_spec.h"

namespace thinwire {

// Returns the factor of a gradient with this staleness, above 0 and at most 1. With other policies,
// it is 1.
inline float StalenessFactor(const StalenessSpec& spec, uint64_t staleness) {
  if (spec.policy != StalenessPolicy::kScale) return 1;
  return 1.0f / static_cast<float>(std::max<uint64_t>(1, staleness));
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_STALENESS_SCALE_H_
