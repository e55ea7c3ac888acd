// Decides which settings have an effect in a job. A setting without effect is refused if it was
// given, even with its default value, because its author expects an effect.
//
//   --density: only valid with push: topk or randomk (got push: fp32)
#ifndef THINWIRE_CONFIG_APPLICABILITY_H_
#define THINWIRE_CONFIG_APPLICABILITY_H_

#include <string_view>

#include "common/problems.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// Returns true if the leaf field called NAME has an effect in the job of CONFIG.
bool Applies(std::string_view name, const JobConfig& config);

// Returns one problem for each field that CONFIG gives without effect.
Problems UselessFields(const JobConfig& config);

// Removes the fields of the job file that lost their effect because a flag or an environment
// variable replaced a setting of the file: with `--optimizer sgd`, the momentum of a file for
// nesterov. PLACES has the place of every given field.
void DropReplacedFields(JobConfig& config, FieldPlaces& places);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_APPLICABILITY_H_
