// The part `consistency` of the job file.
#ifndef THINWIRE_CONFIG_PARTS_CONSISTENCY_H_
#define THINWIRE_CONFIG_PARTS_CONSISTENCY_H_

#include <initializer_list>
#include <vector>

#include "common/spec/rule.h"
#include "common/spec/staleness_spec.h"
#include "config/parts/condition.h"
#include "proto/job.pb.h"

namespace thinwire {

// Returns the consistency rule of C, which may be invalid (Rule::Validate).
Rule RuleOf(const Consistency& c);
StalenessSpec StalenessSpecOf(const Consistency& c);

std::vector<Condition> ConsistencyConditions();

// Returns true if the mode of CONFIG is one of MODES (Consistency::Mode).
bool ModeIs(const JobConfig& config, std::initializer_list<int> modes);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PARTS_CONSISTENCY_H_
