// The effective job contains every setting that has an effect, also if it has its default value.
#ifndef THINWIRE_CONFIG_EFFECTIVE_H_
#define THINWIRE_CONFIG_EFFECTIVE_H_

#include <nlohmann/json.hpp>
#include <string>

#include "proto/job.pb.h"

namespace thinwire {

// CONFIG with every setting given that has an effect and a default. Texts without default stay
// unset.
JobConfig EffectiveJob(const JobConfig& config);

// EffectiveJob as a job file, and as JSON for reports.
std::string EffectiveText(const JobConfig& config);
nlohmann::ordered_json EffectiveJson(const JobConfig& config);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_EFFECTIVE_H_
