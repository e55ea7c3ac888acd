// Decides whether a setting has an effect in a job. A given setting without effect is refused, even
// if it has its default value, because its author expects an effect.
//
//   --density: only valid with push: topk, randomk or dct_topk (got push: fp32)
#ifndef THINWIRE_CONFIG_APPLICABILITY_H_
#define THINWIRE_CONFIG_APPLICABILITY_H_

#include <string_view>

#include "common/text/problems.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// Returns true if the leaf field called NAME has an effect in the job of CONFIG.
bool Applies(std::string_view name, const JobConfig& config);

// Returns one problem for each field that CONFIG sets and that has no effect in the job.
Problems UselessFields(const JobConfig& config);

// Removes fields of the job file that have no effect any more because a flag or an environment
// variable replaced another setting of the file. Example: `--optimizer sgd` removes `momentum` of a
// file with `optimizer: nesterov`. PLACES contains the place of every field that CONFIG sets.
void DropReplacedFields(JobConfig& config, FieldPlaces& places);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_APPLICABILITY_H_
