// Checks the parts of an experiment that are the same for all cases: names, numbers, and the axes
// and settings that figures, claims and `quick` name.
#ifndef THINWIRE_EXPERIMENTS_PLAN_EXPERIMENT_CHECK_H_
#define THINWIRE_EXPERIMENTS_PLAN_EXPERIMENT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/message_text.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

// The largest number of seeds of an experiment.
inline constexpr uint32_t kMostSeeds = 1000;

// The columns of runs.csv: kRunColumn, one per axis, then these. No axis has the name of a column.
inline constexpr const char* kRunColumn = "run";
inline constexpr const char* kResultColumns[] = {
    "seed",        "seconds",     "median_step_seconds", "steps",          "updates",
    "examples",    "push_bytes",  "pull_bytes",          "busy",           "test_accuracy",
    "test_loss",   "late_pushes", "dropped_pushes",      "parameters_crc", "density",
    "sent_values", "model_values"};

// Returns one line for each problem of EXPERIMENT, which begins with the place of its field in
// PLACES.
std::vector<std::string> ExperimentProblems(const Experiment& experiment, const PathPlaces& places);

// Returns whether the tests of EXPERIMENT have a loss and no accuracy (loss: script).
bool HasLossOnly(const Experiment& experiment);

// Returns OK if TEXT is AXIS=SETTING with the names of a setting of EXPERIMENT. Errors:
// InvalidArgument with the known names.
absl::Status CheckSettingText(const Experiment& experiment, const std::string& text);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_EXPERIMENT_CHECK_H_
