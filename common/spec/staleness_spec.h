// StalenessSpec selects how the servers treat gradients that were computed from old parameters. The
// staleness of a gradient is the number of updates that its shard made since these parameters.
// docs/consistency.md has the rules. Immutable.
#ifndef THINWIRE_COMMON_SPEC_STALENESS_SPEC_H_
#define THINWIRE_COMMON_SPEC_STALENESS_SPEC_H_

#include <cstdint>
#include <ostream>
#include <string_view>

#include "common/text/problems.h"

namespace thinwire {

enum class StalenessPolicy : uint8_t {
  kNone,    // stale gradients are applied like fresh ones
  kDrop,    // gradients above a bound are refused
  kScale,   // gradients are divided by their staleness
  kDcasgd,  // gradients are corrected by the change of the parameters
};

// The names of the policies, in the order of the enum StalenessPolicy.
inline constexpr std::string_view kStalenessPolicyNames[] = {"none", "drop", "scale", "dcasgd"};

struct StalenessSpec {
  StalenessPolicy policy = StalenessPolicy::kNone;
  uint64_t bound = 0;    // kDrop: the largest staleness of an accepted gradient
  double lambda = 0.04;  // kDcasgd: the factor of the correction
  double decay = 0;      // kDcasgd: of the mean squares that divide `lambda`; 0: they do not

  Problems Validate() const;

  bool operator==(const StalenessSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const StalenessSpec& spec);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_STALENESS_SPEC_H_
