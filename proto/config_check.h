// The check of a configuration: every rule that a number, a name or a pair of fields must keep, in
// one place. A process checks its configuration once, in main, before anything is built from it.
//
//   job.textproto:7:5: field "density": want a number above 0 and at most 1, got 2
//   --mode: field "mode": want one of sync, backup, ssp, async, got "bakcup"; did you mean
//   "backup"?
//
// The names of optimizers, schedules, models and data sets stand here because rooms that must not
// see each other all speak of them; each room answers for its own.
#ifndef THINWIRE_PROTO_CONFIG_CHECK_H_
#define THINWIRE_PROTO_CONFIG_CHECK_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "common/spec/job_spec.h"
#include "common/spec/schedule_spec.h"
#include "common/spec/task_spec.h"
#include "proto/config.pb.h"
#include "proto/findings.h"

namespace thinwire {

inline constexpr std::string_view kModeNames[] = {"sync", "backup", "ssp", "async"};
inline constexpr std::string_view kOptimizerNames[] = {"sgd",  "momentum", "nesterov",
                                                       "adam", "adamw",    "adagrad"};
inline constexpr std::string_view kGradientSelectionNames[] = {"none", "gtopk"};
inline constexpr std::string_view kSelectionRestNames[] = {"server", "workers"};

// One line per problem, in the fields' order; empty if there is none.
std::vector<std::string> ConfigProblems(const ServerConfig& config, const FieldPlaces& places,
                                        CheckScope scope);
std::vector<std::string> ConfigProblems(const WorkerConfig& config, const FieldPlaces& places,
                                        CheckScope scope);
std::vector<std::string> ConfigProblems(const TrainConfig& config, const FieldPlaces& places,
                                        CheckScope scope);

// Errors: InvalidArgument with every problem on a line of its own.
absl::Status CheckServerConfig(const ServerConfig& config, const FieldPlaces& places = {});
absl::Status CheckWorkerConfig(const WorkerConfig& config, const FieldPlaces& places = {});
absl::Status CheckTrainConfig(const TrainConfig& config, const FieldPlaces& places = {});

// "3:50ms". Errors: InvalidArgument that says what was wanted and what came.
absl::StatusOr<Straggler> ParseStraggler(std::string_view text);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_CONFIG_CHECK_H_
