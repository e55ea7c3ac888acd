// The staleness policy `drop`: a shard refuses gradients whose staleness is above a bound. Without
// another rule, one very late gradient can undo many newer updates. A pure function.
#ifndef THINWIRE_SERVER_CORE_STALENESS_DROP_H_
#define THINWIRE_SERVER_CORE_STALENESS_DROP_H_

#include <cstdint>

#include "common/spec/staleness_spec.h"

namespace thinwire {

// Returns whether the shard refuses a gradient with this staleness. With other policies, it never
// does.
inline bool IsTooStale(const StalenessSpec& spec, uint64_t staleness) {
  return spec.policy == StalenessPolicy::kDrop && staleness > spec.bound;
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_STALENESS_DROP_H_
