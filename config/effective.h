// Prints a job. The effective job contains every setting that has an effect, including settings
// with their default value.
#ifndef THINWIRE_CONFIG_EFFECTIVE_H_
#define THINWIRE_CONFIG_EFFECTIVE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "proto/job.pb.h"

namespace thinwire {

// Returns CONFIG with the default value of each unset field that has an effect. Strings without a
// default remain unset.
JobConfig EffectiveJob(const JobConfig& config);

// Return EffectiveJob(config) as the text of a job file, and as JSON for reports.
std::string EffectiveText(const JobConfig& config);
nlohmann::ordered_json EffectiveJson(const JobConfig& config);

// Returns the settings of CONFIG that differ from their defaults as the text of a job file, with
// one line for each section: "task { model: mlp epochs: 2 }". Returns "" if there are none.
std::string ChangedText(const JobConfig& config);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_EFFECTIVE_H_
