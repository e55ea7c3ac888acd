// Knows which settings make training diverge (docs/training.md, "Divergence"). The bounds were
// measured with the built-in models, so a job beyond them gets a warning, not an error.
#ifndef THINWIRE_CONFIG_STABILITY_H_
#define THINWIRE_CONFIG_STABILITY_H_

#include <string>

#include "common/text/problems.h"
#include "proto/job.pb.h"

namespace thinwire {

// Returns one warning for each combination of settings with which training collapsed. REQUIRES:
// CheckJob accepts CONFIG.
Problems StabilityWarnings(const JobConfig& config);

// Returns what usually helps if a job of CONFIG diverges, such as "a lower learning_rate, a lower
// momentum". REQUIRES: CheckJob accepts CONFIG.
std::string DivergenceAdvice(const JobConfig& config);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_STABILITY_H_
