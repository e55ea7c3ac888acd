// Decides which settings have an effect in a job. Setting a field that has no effect is an error,
// even if the value is the default, because the user expects an effect:
//
//   --density: only valid with push: topk or randomk (got push: fp32)
//
// Pure functions; thread-safe.
#ifndef THINWIRE_CONFIG_APPLICABILITY_H_
#define THINWIRE_CONFIG_APPLICABILITY_H_

#include <string_view>

#include "common/problems.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// Returns true if the leaf field NAME of JobConfig has an effect in the job of CONFIG.
bool Applies(std::string_view name, const JobConfig& config);

// Returns one problem for each field that CONFIG sets and that has no effect.
Problems UselessFields(const JobConfig& config);

// Removes from CONFIG and PLACES the fields of the job file that lost their effect because a flag
// or an environment variable replaced another field of the file. For example, `--optimizer sgd`
// drops `momentum` from a job file with `optimizer: nesterov`. REQUIRES: PLACES has the place of
// every field that CONFIG sets.
void DropReplacedFields(JobConfig& config, FieldPlaces& places);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_APPLICABILITY_H_
