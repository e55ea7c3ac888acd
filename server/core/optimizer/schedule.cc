#include "server/core/optimizer/schedule.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/did_you_mean.h"
#include "common/repeatable_math.h"

namespace thinwire {
namespace {

// The order of Schedule::Kind.
constexpr std::string_view kNames[] = {"constant", "step", "polynomial", "cosine"};

constexpr double kLargestRate = std::numeric_limits<float>::max();
constexpr double kLargestPower = 1e6;

// Written so that a NaN is out of every range.
absl::Status CheckRange(const char* field, double value, double largest) {
  if (value >= 0 && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": want a number from 0 to ", largest, ", got ", value));
}

absl::Status CheckNumbers(const ScheduleSpec& spec) {
  absl::Status status = CheckRange("learning_rate", spec.learning_rate, kLargestRate);
  status.Update(CheckRange("warmup", spec.warmup, 1));
  for (double at : spec.decay_at) status.Update(CheckRange("decay_at", at, 1));
  status.Update(CheckRange("decay_factor", spec.decay_factor, 1));
  status.Update(CheckRange("power", spec.power, kLargestPower));
  return status;
}

}  // namespace

double PlanProgress(uint64_t examples, uint64_t planned_examples) {
  if (examples >= planned_examples) return 1;
  return static_cast<double>(examples) / static_cast<double>(planned_examples);
}

absl::StatusOr<Schedule> Schedule::Make(const ScheduleSpec& spec) {
  const auto* name = std::find(std::begin(kNames), std::end(kNames), spec.name);
  if (name == std::end(kNames)) return UnknownWord("schedule", spec.name, kNames);
  if (auto status = CheckNumbers(spec); !status.ok()) return status;
  return Schedule(static_cast<Kind>(name - std::begin(kNames)), spec);
}

double Schedule::Rate(uint64_t examples, uint64_t planned_examples) const {
  const double p = planned_examples == 0 ? 0 : PlanProgress(examples, planned_examples);
  if (planned_examples != 0 && p < spec_.warmup) return spec_.learning_rate * p / spec_.warmup;
  switch (kind_) {
    case Kind::kConstant:
      break;
    case Kind::kStep: {
      const auto passed = std::count_if(spec_.decay_at.begin(), spec_.decay_at.end(),
                                        [p](double at) { return at <= p; });
      return spec_.learning_rate * IntegerPower(spec_.decay_factor, passed);
    }
    case Kind::kPolynomial:
      return spec_.learning_rate * Power(1 - p, spec_.power);
    case Kind::kCosine:
      return spec_.learning_rate * HalfCosine(p);
  }
  return spec_.learning_rate;
}

}  // namespace thinwire
