#include "config/applicability.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/fields.h"
#include "config/parts/compression.h"
#include "config/parts/condition.h"
#include "config/parts/consistency.h"
#include "config/parts/optimization.h"
#include "config/parts/recovery.h"
#include "config/parts/task.h"

namespace thinwire {
namespace {

// The parts in the order of the messages in proto/job.proto.
const std::vector<Condition>& Conditions() {
  static const std::vector<Condition> conditions = [] {
    std::vector<Condition> all;
    for (const auto& part : {RecoveryConditions(), ConsistencyConditions(),
                             OptimizationConditions(), CompressionConditions(), TaskConditions()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return conditions;
}

const Condition* ConditionOf(std::string_view name) {
  for (const Condition& condition : Conditions()) {
    for (std::string_view field : condition.fields) {
      if (field == name) return &condition;
    }
  }
  return nullptr;
}

}  // namespace

bool Applies(std::string_view name, const JobConfig& config) {
  const Condition* condition = ConditionOf(name);
  return condition == nullptr || condition->holds(config);
}

Problems UselessFields(const JobConfig& config) {
  Problems problems;
  const std::vector<Field> fields = Settings(*JobConfig::descriptor());
  const auto value_of = [&](std::string_view name) {
    for (const Field& field : fields) {
      if (field.name() == name) return absl::StrCat(field.name(), ": ", ValueText(config, field));
    }
    return std::string(name);
  };
  for (const Field& field : fields) {
    const Condition* condition = ConditionOf(field.name());
    if (condition == nullptr || condition->holds(config) || !IsGiven(config, field)) continue;
    std::vector<std::string> got;
    for (std::string_view decider : condition->deciders) got.push_back(value_of(decider));
    problems.Add(field.name(), absl::StrCat("only valid with ", condition->text, " (got ",
                                            absl::StrJoin(got, ", "), ")"));
  }
  return problems;
}

void DropReplacedFields(JobConfig& config, FieldPlaces& places) {
  const auto is_flag = [&](std::string_view name) {
    const auto place = places.find(std::string(name));
    return place != places.end() && !IsFilePlace(place->second);
  };
  const JobConfig given = config;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    const Condition* condition = ConditionOf(field.name());
    if (condition == nullptr || condition->holds(given) || !IsGiven(given, field)) continue;
    if (is_flag(field.name()) || std::ranges::none_of(condition->deciders, is_flag)) continue;
    Clear(config, field);
    places.erase(field.name());
  }
}

}  // namespace thinwire
