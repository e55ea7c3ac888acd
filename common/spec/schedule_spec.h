// ScheduleSpec selects how the learning rate, or the batch of an update, changes over the run.
// server/core/optimizer/schedule.h has the formulas. Immutable.
#ifndef THINWIRE_COMMON_SPEC_SCHEDULE_SPEC_H_
#define THINWIRE_COMMON_SPEC_SCHEDULE_SPEC_H_

#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "common/text/problems.h"

namespace thinwire {

enum class ScheduleKind : uint8_t { kConstant, kStep, kPolynomial, kCosine, kNoiseScale };

// The names of the schedules, in the order of the enum ScheduleKind.
inline constexpr std::string_view kScheduleNames[] = {"constant", "step", "polynomial", "cosine",
                                                      "noise_scale"};

std::ostream& operator<<(std::ostream& out, ScheduleKind kind);

// When the batch of an update doubles (server/core/update/batch_growth.h).
struct GrowthSpec {
  uint64_t largest_batch = 0;  // examples in an update; 0: a tenth of the training set
  double ratio = 1;            // growth_ratio: the noise scale, divided by the next batch

  bool operator==(const GrowthSpec&) const = default;
};

struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0.01;
  double warmup = 0;                  // the part of the run, 0 to 1, over which the rate rises
  std::vector<double> decay_at = {};  // kStep: parts of the run after which the rate drops
  double decay_factor = 0.1;          // kStep: the factor that multiplies the rate at each decay_at
  double power = 1;                   // kPolynomial: the exponent
  GrowthSpec growth = {};             // kNoiseScale

  // Returns whether the batch of an update grows during the run.
  bool grows_batch() const { return kind == ScheduleKind::kNoiseScale; }

  Problems Validate() const;

  bool operator==(const ScheduleSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ScheduleSpec& spec);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_SCHEDULE_SPEC_H_
